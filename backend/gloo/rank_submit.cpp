// The part of a rank's port that takes operations.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/gloo/rank_host.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

Ticket RankHost::submit(std::span<const Op> ops) {
  ensure(!ops.empty(), "a submission holds at least one operation");
  lanes_.refuse_when_sealed();
  if (ops.front().kind == OpKind::host) {
    return host_work(ops.front());
  }
  for (const Op& op : ops) {
    if (op.kind == OpKind::recv && op.peer == any_rank && !state_.shared.options.any_source) {
      throw ProgramException(op.site, "NCCL has no receive from any source; name the source");
    }
  }
  std::unique_lock lock(state_.mutex);
  wait_for_room(lock);
  const StreamId on = ops.front().stream;
  auto submission = std::make_unique<Submission>();
  submission->ticket = state_.tickets.add(lanes_.current(), state_.shared.progress.now());
  for (const Op& op : ops) {
    add_part(*submission, op);
  }
  operations_ += static_cast<int64_t>(ops.size());
  const Ticket ticket = submission->ticket;
  enqueue(std::move(submission), on);
  return ticket;
}

void RankHost::add_part(Submission& submission, const Op& op) {
  const auto after = op.list().after;
  state_.buffers.hold(op.list().reads);
  state_.buffers.hold(op.list().writes);
  submission.after.insert(submission.after.end(), after.begin(), after.end());
  if (!is_communication(op.kind)) {
    submission.parts.emplace_back(op, nullptr, 0);
    return;
  }
  const auto found = state_.groups.find(op.group);
  ensure(found != state_.groups.end(), "a group is used once its new_group has settled");
  Communicator& group = found->second;
  Part& part =
      submission.parts.emplace_back(op, &group, is_collective(op.kind) ? group.calls++ : 0);
  if (op.kind == OpKind::send) {
    Ticket& last = group.last_send[{op.peer, op.tag}];
    if (last != submission.ticket) {
      submission.after.push_back(std::exchange(last, submission.ticket));
    }
  } else if (op.kind == OpKind::recv && op.peer != any_rank) {
    part.wanted = state_.matcher.want(group.key, op.peer, op.tag, op.bytes.count());
  }
}

void RankHost::enqueue(std::unique_ptr<Submission> submission, StreamId on) {
  ++state_.in_flight;
  Progress& progress = state_.shared.progress;
  progress.begin(progress.operations);
  auto& worker = workers_[on];
  if (worker == nullptr) {
    worker = std::make_unique<StreamWorker>(state_);
  }
  worker->push(std::move(submission));
}

void RankHost::stop_workers() {
  {
    const std::lock_guard lock(state_.mutex);
    for (const auto& [on, worker] : workers_) {
      worker->stop();
    }
  }
  workers_.clear();
}

// Later submissions of the lane come after it because the lane itself does the work.
Ticket RankHost::host_work(const Op& op) {
  const Time issue = state_.shared.progress.now();
  if (state_.shared.gloo.sleep_timed_kernels) {
    // The scenario's `host:` time itself, when the world is asked to take it.
    std::this_thread::sleep_for(std::chrono::nanoseconds(op.work / 1000));
  }
  const std::lock_guard lock(state_.mutex);
  ++operations_;
  const Ticket ticket = state_.tickets.add(lanes_.current(), issue);
  state_.tickets.start(ticket, issue);
  state_.tickets.settle(ticket, {Outcome::ok, {}, {}}, state_.shared.progress.now());
  return ticket;
}

void RankHost::wait_for_room(std::unique_lock<std::mutex>& lock) {
  const int64_t room = std::max(1, state_.shared.options.launch_queue);
  if (state_.in_flight >= room && !state_.aborted) {
    const Idle idle(state_.shared.progress);
    state_.held_back = lanes_.current();
    state_.host_wakes.wait(lock, [&] { return state_.aborted || state_.in_flight < room; });
    state_.held_back.reset();
  }
  if (state_.aborted) {
    lanes_.seal();
    lanes_.refuse_when_sealed();
  }
}

}  // namespace lockstep::backend
