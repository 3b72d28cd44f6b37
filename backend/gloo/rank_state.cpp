#include "backend/gloo/rank_state.hpp"

#include <algorithm>
#include <numeric>

#include "model/core/random.hpp"

namespace lockstep::backend {

RankState::RankState(int32_t rank_number, RunShared& shared_by_all,
                     std::shared_ptr<gloo::Context> context)
    : rank(rank_number),
      shared(shared_by_all),
      mailbox(rank_number, std::move(context), shared_by_all.progress),
      matcher(rank_number, shared_by_all.options.world_size, shared_by_all.run, mailbox,
              shared_by_all.progress),
      kernels(shared_by_all.gloo.kernels ? shared_by_all.gloo.kernels() : nullptr),
      kept_values(kernels ? kernels->store() : nullptr),
      buffers(shared_by_all.options.numerics, shared_by_all.options.device_memory,
              shared_by_all.options.value_budget, kept_values) {
  tickets.follow(shared.follower);
  Communicator& world = groups[world_group];
  world.members.resize(static_cast<size_t>(shared.options.world_size));
  std::iota(world.members.begin(), world.members.end(), 0);
}

bool RankState::carries_values(const Slice& slice) {
  const std::lock_guard lock(mutex);
  return buffers.carries_values(slice.buffer);
}

// The operation that asks holds the buffer, and kept values are copied without the mutex.
ValueView RankState::view(const Slice& of) {
  if (kept_values != nullptr) {
    return carries_values(of) ? kept_values->view(of) : ValueView();
  }
  const auto copy = std::make_shared<Values>(load(of));
  return {copy->bytes(), copy};
}

void RankState::change(const Slice& slice, const std::function<void(std::span<std::byte>)>& fill) {
  if (!carries_values(slice)) {
    return;
  }
  if (kept_values != nullptr) {
    kept_values->change(slice, fill);
    return;
  }
  Values values(slice.dtype, slice.elements);
  fill(values.bytes());
  const std::lock_guard lock(mutex);
  buffers.store(slice, values);
}

Values RankState::load(const Slice& from) {
  if (kept_values == nullptr) {
    const std::lock_guard lock(mutex);
    return from.buffer == no_buffer ? Values() : buffers.load(from);
  }
  const ValueView held = view(from);
  Values values(from.dtype, static_cast<int64_t>(held.bytes.size()) / size_of(from.dtype));
  std::ranges::copy(held.bytes, values.bytes().begin());
  return values;
}

void RankState::store(const Slice& to, const Values& values) {
  if (!values.empty()) {
    change({to.buffer, to.dtype, to.begin, values.size()},
           [&](auto memory) { std::ranges::copy(values.bytes(), memory.begin()); });
  }
}

void RankState::started(Ticket ticket) {
  const std::lock_guard lock(mutex);
  tickets.start(ticket, shared.progress.now());
}

void RankState::note_broken(SiteId site) {
  const std::lock_guard lock(mutex);
  if (!broken) {
    broken = end_of(std::current_exception());
    if (broken->site == no_site) {
      broken->site = site;
    }
  }
}

void RankState::settle(const Submission& submission, const Status& status) {
  {
    const std::lock_guard lock(mutex);
    for (const Part& part : submission.parts) {
      buffers.let_go(part.op().list().reads);
      buffers.let_go(part.op().list().writes);
    }
    tickets.settle(submission.ticket, status, shared.progress.now());
    --in_flight;
    failed = failed || status.outcome == Outcome::failed;
    wake_all();
  }
  shared.progress.step();
  shared.progress.end(shared.progress.operations);
}

void RankState::add_group(GroupId group, uint64_t key, std::vector<int32_t> members) {
  const std::lock_guard lock(mutex);
  Communicator& made = groups[group];
  made.key = key;
  made.members = std::move(members);
  if (shared.follower != nullptr) {
    shared.follower->grouped(group, key, made.members);
  }
}

void RankState::keep(std::unique_ptr<Message> eager_send) {
  if (eager_send != nullptr) {
    const std::lock_guard lock(mutex);
    eager_sends.push_back(std::move(eager_send));
  }
}

uint64_t RankState::next_payload_slot() {
  const std::lock_guard lock(mutex);
  return random_key(random_key(shared.run, 2), ++messages);
}

bool RankState::any_failed() {
  const std::lock_guard lock(mutex);
  return failed;
}

void RankState::connection_broke() {
  const std::lock_guard lock(mutex);
  failed = true;
}

void RankState::fulfil(Ticket promise) {
  tickets.settle(promise, {Outcome::ok, {}, {}}, shared.progress.now());
  wake_all();
}

void RankState::wake_all() {
  wake_lanes();
  for (std::condition_variable* dependent : dependents) {
    dependent->notify_all();
  }
  host_wakes.notify_all();
}

void RankState::wake_lanes() {
  std::erase_if(waiters, [this](const Waiter& waiter) {
    if (!tickets.settled(waiter.tickets, waiter.until)) {
      return false;
    }
    ready.push_back(waiter.lane);
    return true;
  });
}

std::vector<WaitingLane> RankState::abort(Outcome outcome) {
  std::vector<WaitingLane> waiting;
  {
    const std::lock_guard lock(mutex);
    for (const Waiter& waiter : waiters) {
      waiting.push_back({rank, waiter.lane->id(), waiter.until, waiter.tickets});
    }
    if (held_back) {
      std::vector<Ticket> queue_full;
      if (const auto oldest = tickets.oldest_pending()) {
        queue_full.push_back(*oldest);
      }
      waiting.push_back({rank, *held_back, Until::all, std::move(queue_full)});
    }
    std::sort(waiting.begin(), waiting.end(),
              [](const auto& a, const auto& b) { return a.lane < b.lane; });
    aborted = true;
    tickets.end_pending(outcome);
    wake_all();
  }
  matcher.abort();
  mailbox.abort();
  return waiting;
}

}  // namespace lockstep::backend
