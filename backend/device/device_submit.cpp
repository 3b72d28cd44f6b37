// The part of a rank's port that takes operations and queues them on their streams.
#include <fmt/format.h>

#include <algorithm>

#include "backend/device/device_host.hpp"
#include "model/core/ensure.hpp"
#include "model/network/arithmetic.hpp"

namespace lockstep::backend {

namespace {

bool is_member(const std::vector<int32_t>& members, int32_t rank) {
  return std::ranges::find(members, rank) != members.end();
}

// The rank is no member of the group, or the root or the peer is none.
bool is_answered(const Op& op, const DeviceGroup& group, int32_t rank) {
  const bool names_another = is_point_to_point(op.kind) || has_root(op.kind);
  return is_member(group.members, rank) && (!names_another || is_member(group.members, op.peer));
}

}  // namespace

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
  held_back_ = lanes_.current();
  moved_ = Clock::now();
  if (pump(deadline_, [&] { return in_flight_ < room; }) == Ended::nothing_moved) {
    abort(Outcome::timed_out, true);
  }
  held_back_.reset();
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
  const auto found = groups_.find(op.group);
  ensure(found != groups_.end(), "a group is used once its new_group has settled");
  DeviceGroup& group = found->second;
  work.communicates = true;
  const int64_t call = is_collective(op.kind) ? group.calls++ : 0;
  if (!is_answered(op, group, static_cast<int32_t>(place_.rank.value))) {
    work.unanswered = true;
    return;
  }
  Link& link = link_of(op, group);
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

// Point-to-point has a link of its own for each group, direction and tag, so that messages wait for
// their own partner alone; a link of the library knows no tags and one order for all it carries.
Link& DeviceHost::link_of(const Op& op, const DeviceGroup& group) {
  const auto self = static_cast<int32_t>(place_.rank.value);
  std::string name = fmt::format("{:016x}", group.key);
  std::vector<int32_t> members = group.members;
  if (is_point_to_point(op.kind)) {
    members = op.kind == OpKind::send ? std::vector{self, op.peer} : std::vector{op.peer, self};
    name += fmt::format("/{}-{}/{}", members[0], members[1], op.tag);
    if (op.peer == self) {
      members.pop_back();
    }
  }
  const auto [found, is_new] = links_.try_emplace(name);
  Link& link = found->second;
  if (is_new) {
    link.name = std::move(name);
    link.members = std::move(members);
    link.side_stream = side_streams + static_cast<StreamNumber>(links_.size());
    link.self = static_cast<int32_t>(std::ranges::find(link.members, self) - link.members.begin());
  }
  return link;
}

}  // namespace lockstep::backend
