// The part of a rank's port that takes operations and queues them on their streams.
#include <algorithm>

#include "backend/device/device_host.hpp"
#include "model/core/ensure.hpp"
#include "model/network/arithmetic.hpp"

namespace lockstep::backend {

Ticket DeviceHost::submit(std::span<const Op> ops) {
  ensure(!ops.empty(), "a submission holds at least one operation");
  lanes_.refuse_when_sealed();
  if (ops.front().kind == OpKind::host) {
    return host_work(ops.front());
  }
  for (const Op& op : ops) {
    if (op.kind == OpKind::recv && op.peer == any_rank) {
      throw ProgramException(op.site, "NCCL has no receive from any source; name the source");
    }
  }
  wait_for_room();
  auto work = std::make_unique<DeviceWork>();
  work->ticket = tickets_.add(lanes_.current(), now());
  work->on = ops.front().stream;
  for (const Op& op : ops) {
    add(*work, op);
  }
  const Ticket ticket = work->ticket;
  operations_ += static_cast<int64_t>(ops.size());
  ++in_flight_;
  works_.emplace(key_of(ticket), work.get());
  DeviceStream& stream = streams_[work->on];
  stream.queued.push_back(std::move(work));
  launch_ready(stream);
  return ticket;
}

// Later submissions of the lane come after it because the lane itself does the work.
Ticket DeviceHost::host_work(const Op&) {
  ++operations_;
  const Time issue = now();
  const Ticket ticket = tickets_.add(lanes_.current(), issue);
  tickets_.start(ticket, issue);
  tickets_.settle(ticket, {Outcome::ok, {}, {}}, now());
  return ticket;
}

void DeviceHost::wait_for_room() {
  const int64_t room = std::max(1, options_.launch_queue);
  if (in_flight_ < room) {
    return;
  }
  queue_.hold_back(lanes_.current());
  moved_ = Clock::now();
  if (pump(deadline_, [&] { return in_flight_ < room; }) == Ended::nothing_moved) {
    abort(Outcome::timed_out, true);
  }
  queue_.hold_back(std::nullopt);
  lanes_.refuse_when_sealed();
}

void DeviceHost::add(DeviceWork& work, const Op& op) {
  const auto after = op.list().after;
  work.after.insert(work.after.end(), after.begin(), after.end());
  buffers_.hold(op.list().reads);
  buffers_.hold(op.list().writes);
  work.ops.emplace_back(op);
  if (is_communication(op.kind)) {
    add_communication(work, op);
  }
}

void DeviceHost::add_communication(DeviceWork& work, const Op& op) {
  DeviceGroup& group = links_.group(op.group);
  work.communicates = true;
  const int64_t call = is_collective(op.kind) ? group.calls++ : 0;
  if (!links_.is_answered(op, group)) {
    work.unanswered = true;
    return;
  }
  Link& link = links_.of(op, group);
  const int64_t turn = link.submitted++;
  auto part = std::ranges::find(work.parts, &link, &DeviceWork::Part::link);
  if (part == work.parts.end()) {
    work.parts.push_back({&link, turn, {}, {}, DeviceWork::State::queued});
    part = work.parts.end() - 1;
  }
  part->ops.push_back(&work.ops.back().get());
  if (op.kind == OpKind::new_group) {
    work.parent = &group;
    work.call = call;
  }
}

}  // namespace lockstep::backend
