#include "model/strategy/data_parallel/bagua/async_average.hpp"

#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/exchange/collective_parts.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace bagua_sites;

namespace {
constexpr StreamId thread_stream = stream(queue::copy);
}

AsyncAverage::AsyncAverage(const Slice& weights, GroupId group, Time interval,
                           bool barrier_is_all_reduce)
    : shared_(std::make_shared<Shared>()), barrier_is_all_reduce_(barrier_is_all_reduce) {
  shared_->weights = weights;
  shared_->group = group;
  shared_->interval = interval;
}

void AsyncAverage::prepare(Rank& rank) {
  const Slice& weights = shared_->weights;
  shared_->ranks = rank.world_size();
  shared_->snapshot = rank.allocate(Purpose::communication, weights.dtype, weights.elements);
  shared_->sum = rank.allocate(Purpose::communication, weights.dtype, weights.elements);
  shared_->flag = rank.allocate(Purpose::metric, DType::uint8, 1);
  shared_->waiting = rank.promise();
  shared_->served = rank.promise();
  shared_->training_is_over = rank.promise();
  shared_->asked_to_end = rank.promise();
  shared_->ended = rank.promise();
}

// What training does for its thread. The kernels come between those of two steps.
void AsyncAverage::serve(Rank& rank, Shared& shared) {
  // Either lane may have submitted what came before.
  const ComputeOptions options{
      compute_stream,
      {shared.done},
      site_id(shared.has_snapshot ? apply_average : bagua_sites::snapshot)};
  if (!shared.has_snapshot) {
    elementwise(rank, Kernel::copy, {shared.weights}, {shared.snapshot}, 0, options);
    shared.done = elementwise(rank, Kernel::copy, {shared.weights}, {shared.sum}, 0, options);
  } else {
    elementwise(rank, Kernel::scale, {}, {shared.sum}, 1.0 / shared.ranks, options);
    elementwise(rank, Kernel::add_scaled, {shared.snapshot}, {shared.sum}, -1, options);
    shared.done = elementwise(rank, Kernel::add, {shared.sum}, {shared.weights}, 0, options);
  }
  shared.has_snapshot = !shared.has_snapshot;
}

// That training ends is seen once, and no step comes behind it.
std::optional<LaneMemory> AsyncAverage::Shared::memory() const {
  if (stands == Stands::elsewhere || over || asks) {
    return std::nullopt;
  }
  LaneMemory memory;
  memory.numbers = {static_cast<int64_t>(stands), has_snapshot ? 1 : 0, waits ? 1 : 0};
  for (const Bytes bytes : exchanged) {
    memory.numbers.push_back(bytes.count());
  }
  memory.tickets = {waiting, served, done};
  if (stands == Stands::negotiating) {
    memory.values.push_back(flag);
  }
  return memory;
}

Program AsyncAverage::wait_for_training(Rank& rank, std::shared_ptr<Shared> shared, Stands as) {
  const bool alone = rank.choose(site_id(bagua_sites::serve), ChoiceKind::settle_any, 2,
                                 shared->over ? 1 : 0) != 0;
  if (alone) {
    co_await rank.settle(shared->training_is_over);
    serve(rank, *shared);
  } else {
    shared->waits = true;
    rank.fulfil(shared->waiting);
    shared->stands = as;
    co_await rank.settle(shared->served);
    shared->stands = Stands::elsewhere;
  }
}

// Stops only when all ranks have asked.
Task<bool> AsyncAverage::all_ask_to_end(Rank& rank, std::shared_ptr<Shared> shared) {
  const uint32_t asks =
      rank.choose(site_id(negotiate), ChoiceKind::settle_any, 2, shared->asks ? 1 : 0);
  if (asks != 0) {
    co_await rank.settle(shared->asked_to_end);
  }
  rank.write(shared->flag, Values::of(DType::uint8, {static_cast<double>(asks)}));
  const Ticket negotiated = rank.all_reduce(shared->group, shared->flag, Reduction::min,
                                            {thread_stream, {}, site_id(negotiate)});
  shared->stands = Stands::negotiating;
  co_await rank.settle(negotiated);
  shared->stands = Stands::elsewhere;
  co_return rank.read(shared->flag).number(0) != 0;
}

Program AsyncAverage::average_again_and_again(Rank& rank, std::shared_ptr<Shared> shared) {
  for (;;) {
    const bool is_last = co_await all_ask_to_end(rank, shared);
    if (is_last) {
      break;
    }
    co_await wait_for_training(rank, shared, Stands::wants_snapshot);
    const Ticket summed =
        rank.all_reduce(shared->group, shared->sum, Reduction::sum,
                        {thread_stream, {shared->done}, site_id(average_snapshots)});
    shared->exchanged.push_back(shared->sum.bytes());
    shared->stands = Stands::averaging;
    co_await rank.settle(summed);
    shared->stands = Stands::elsewhere;
    co_await wait_for_training(rank, shared, Stands::wants_update);
    const Ticket slept = rank.host(shared->interval, site_id(interval));
    co_await rank.settle(slept);
  }
  rank.fulfil(shared->ended);
}

Program AsyncAverage::forward_begins(Rank& rank, bool training) {
  if (!training) {
    co_return;
  }
  holds_lock_ = true;
  if (!std::exchange(is_running_, true)) {
    Lane& thread = rank.start_lane(average_again_and_again(rank, shared_));
    thread.is_described_by(*shared_);
    co_return;
  }
  const bool serves = co_await serves_now(rank);
  if (serves) {
    rank.fulfil(std::exchange(shared_->served, rank.promise()));
  }
}

Program AsyncAverage::finish(Rank&) {
  holds_lock_ = false;
  co_return;
}

// True: the thread waits, and has been served.
Task<bool> AsyncAverage::serves_now(Rank& rank) {
  const bool serves = rank.choose(site_id(bagua_sites::serve), ChoiceKind::settle_any, 2,
                                  shared_->waits ? 1 : 0) != 0;
  if (serves) {
    co_await rank.settle(shared_->waiting);
    serve(rank, *shared_);
    shared_->waits = false;
    shared_->waiting = rank.promise();
  }
  co_return serves;
}

// AsyncModelAverageAlgorithm.abort
Program AsyncAverage::end(Rank& rank) {
  if (is_running_) {
    const bool serves = co_await serves_now(rank);
    shared_->over = true;
    rank.fulfil(shared_->training_is_over);
    if (serves) {
      rank.fulfil(shared_->served);
    }
    co_await framework_barrier(rank, world_group, barrier_is_all_reduce_, site_id(abort_thread));
    shared_->asks = true;
    rank.fulfil(shared_->asked_to_end);
    co_await rank.settle(shared_->ended);
    co_await rank.settle(shared_->done);
  }
  rank.release(shared_->snapshot);
  rank.release(shared_->sum);
  rank.release(shared_->flag);
}

std::vector<Bytes> AsyncAverage::take_exchanged_bytes() {
  return std::exchange(shared_->exchanged, {});
}

}  // namespace lockstep
