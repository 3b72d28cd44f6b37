#include "sim/world_state.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace lockstep::sim {

void WorldState::add_bits(double number) { add(std::bit_cast<int64_t>(number)); }

bool WorldState::describe(int32_t level, StateWords& words) {
  words_ = &words;
  origin_ = world_.ranks.front().running->host;
  if (!world_.messages.any_source_.is_empty() || world_.in_flight.has_ready()) {
    return false;
  }
  add(world_.agenda.now());
  for (const RankState& rank : world_.ranks) {
    if (!add_rank(rank, level)) {
      return false;
    }
  }
  for (const Communicator& communicator : world_.communicators.all_) {
    add_calls(communicator);
  }
  add_messages();
  for (const Agenda::Entry& event : world_.agenda.in_order()) {
    if (!add_event(event)) {
      return false;
    }
  }
  end_list();
  add_flows();
  words.trim();
  return true;
}

namespace {

bool is_describable(const RankState& rank, const LaneState& lane) {
  if (!lane.tickets.told.empty()) {
    return false;
  }
  if (lane.lane.id().value == 0) {
    return !lane.lane.done() && (rank.follower == nullptr || lane.waiting);
  }
  return lane.lane.done() || (lane.waiting && lane.lane.description() != nullptr);
}

}  // namespace

bool WorldState::add_rank(const RankState& rank, int32_t level) {
  const bool is_plain = rank.end.kind == RankEnd::Kind::finished && !rank.broken &&
                        std::ranges::all_of(rank.lanes, [&rank](const auto& lane) {
                          return is_describable(rank, *lane);
                        });
  if (!is_plain) {
    return false;
  }
  const LaneState& lane = *rank.lanes.front();
  for (const LoopState& loop : rank.loops) {
    add(loop.left_out.periods);
  }
  if (rank.follower == nullptr) {
    add_place(rank, level);
    add_lane(rank, lane);
  } else if (!add_described(rank, lane, *rank.follower)) {
    return false;
  }
  for (size_t beside = 1; beside < rank.lanes.size(); ++beside) {
    const LaneState& other = *rank.lanes[beside];
    if (!other.lane.done() && !add_described(rank, other, *other.lane.description())) {
      return false;
    }
  }
  const Time host = earliest_clock(rank);
  for (const auto& each : rank.lanes) {
    if (!has_clocks_apart(rank)) {
      add(each->tickets.in_flight());
    }
    add_tickets(rank, *each, host);
  }
  end_list();
  add_streams(rank, host);
  end_list();
  for (const GroupState& group : rank.groups) {
    const bool is_member = group.member >= 0;  // others never call it
    add(is_member ? group.next_call - world_.communicators[group.communicator].first_call : 0);
  }
  end_list();
  add_launched(rank.launched, host);
  add_beside(rank.beside);
  add_memory(*rank.buffers);
  return true;
}

// Where a program with loops stands shows in its tickets: how many it has submitted in its period.
void WorldState::add_place(const RankState& rank, int32_t level) {
  const auto at = static_cast<size_t>(level);
  const LaneState& lane = *rank.lanes.front();
  const LoopState& present = rank.loops[at];
  add(int64_t{lane.tickets.next()} - present.first_ticket + present.tickets_left_out);
  add(std::bit_cast<int64_t>(rank.submitted.since(present.submitted)));
  // Rank 0 begins a period: others may still be in the one before, or in later ones.
  const int64_t ahead = present.periods - world_.ranks.front().loops[at].periods;
  add(ahead);
  add(ahead > 0 || rank.place.rank.value == 0 ? 0 : present.kind);
  for (const int64_t word : present.memory) {
    add(word);
  }
  if (level > period_level::micro_batches) {  // how far it is in a loop within the period
    add(rank.loops[period_level::micro_batches].alike);
  }
  end_list();
}

// A tail that its lane has forgotten holds up the next operation as little as one that is known to
// have finished before (InFlight::depend_on).
void WorldState::add_streams(const RankState& rank, Time host) {
  for (const StreamState& stream : rank.streams) {
    const bool has_ended = !stream.known && stream.tail && is_past(rank, stream.tail);
    add(int64_t{stream.id.value});
    add(stream.known || has_ended ? 1 : 0);
    if (stream.known || has_ended) {
      add(has_ended ? host : std::max(stream.finish, host));
    } else {
      add_ticket(rank, stream.tail);
    }
  }
}

void WorldState::add_launched(const LaunchQueue& launched, Time host) {
  add(launched.counting_ ? 1 : 0);
  add(launched.unknown_);
  for (size_t at = launched.head_; at < launched.finishes_.size(); ++at) {
    if (launched.finishes_[at] > host) {
      add(launched.finishes_[at]);
    }
  }
  end_list();
}

void WorldState::add_beside(const BesideKernels& beside) {
  if (beside.communicated_until > Time{}) {
    add(beside.computes_until);
    add(beside.communicated_until);
    add(beside.lost.count());
  }
}

void WorldState::add_memory(const BufferTable& buffers) {
  add(std::ssize(buffers.memory()));
  for (const auto& [device, memory] : buffers.memory()) {
    add(device.value);
    add(memory.held.count());
    add(memory.peak.count());
    for (const Bytes bytes : memory.held_by_purpose) {
      add(bytes.count());
    }
  }
}

void WorldState::add_part(uint32_t index) {
  const Part& part = world_.in_flight[index];
  const RankState& rank = world_.ranks[part.rank];
  add(part.rank);
  add_ticket(rank, part.ticket);
  add(static_cast<int64_t>(part.op.kind));
  add(part.op.bytes.count());
  add(part.op.work);
  add(static_cast<int64_t>(part.op.peer));
  add(is_point_to_point(part.op.kind) ? int64_t{part.op.tag} : 0);  // of an event it is a mark
  add(part.op.group.value);
  add(part.ready);
  add(part.unresolved);
  add(part.failed ? 1 : 0);
  add(part.next == index ? 1 : 0);  // of a message: whether all that it comes after is known
  add(part.partner != no_index ? 1 : 0);
  if (part.partner != no_index) {
    const Part& partner = world_.in_flight[part.partner];
    add(partner.rank);
    add_ticket(world_.ranks[partner.rank], partner.ticket);
    add(partner.ready);
    add(partner.next == part.partner ? 1 : 0);
  }
}

void WorldState::add_calls(const Communicator& communicator) {
  add(std::ssize(communicator.window));
  for (const CallSlot& call : communicator.window) {
    add(call.arrived);
    if (call.arrived > 0) {
      add(call.latest);
    }
    for (uint32_t index = call.members; index != no_index; index = world_.in_flight[index].next) {
      add_part(index);
    }
    end_list();
  }
}

// Messages that have found no partner, in the order of their channels: each of these is of one
// sender, one receiver, one communicator and one tag, so its first message tells which it is.
void WorldState::add_messages() {
  using Place = std::tuple<uint32_t, int32_t, int32_t, uint32_t, OpKind>;
  std::vector<std::pair<Place, const PartQueue*>> open;
  const auto add_open = [&](const PartQueue& parts) {
    if (!parts.empty()) {
      const Part& first = world_.in_flight[parts.front()];
      open.push_back(
          {{first.rank, first.op.peer, first.op.tag, first.op.group.value, first.op.kind}, &parts});
    }
  };
  for (const auto& [key, channel] : world_.messages.channels_.by_key_) {
    add_open(channel.sends);
    add_open(channel.receives);
  }
  std::ranges::sort(open, {}, [](const auto& entry) { return entry.first; });
  for (const auto& [place, parts] : open) {
    for (const uint32_t part : parts->parts()) {
      add_part(part);
    }
    end_list();
  }
  end_list();
}

void WorldState::add_transfer(uint32_t index) {
  const Transfers::Planned& planned = world_.transfers.planned_[index];
  const Transfer& transfer = planned.transfer;
  add(transfer.start);
  add(planned.plan.latency.count());
  add(planned.plan.volume.count());
  add(std::bit_cast<int64_t>(planned.plan.links));
  add(std::bit_cast<int64_t>(planned.plan.weights));
  add(planned.is_planned ? 1 : 0);
  if (!transfer.is_collective) {
    add_part(transfer.first);
    return;
  }
  for (uint32_t part = transfer.first; part != no_index; part = world_.in_flight[part].next) {
    add_part(part);
  }
  end_list();
}

bool WorldState::add_event(const Agenda::Entry& event) {
  switch (event.kind) {
    case Agenda::Kind::lane: {
      const LaneState& lane = lane_at(world_.ranks, event.index);
      if (!lane.waiting || !event.is_of(lane.generation)) {
        return true;  // void
      }
      add(event.index);
      break;
    }
    case Agenda::Kind::flow_start: add_transfer(event.index); break;
    case Agenda::Kind::flow_finish:
      if (!world_.links.flows_.holds(event.index, event.generation)) {
        return true;  // void
      }
      flow_place_.emplace(event.index, std::ssize(flows_));
      flows_.push_back(event.index);
      add_transfer(world_.transfers.of_flow_[event.index]);
      break;
    case Agenda::Kind::link_slow:
    case Agenda::Kind::link_free: return true;  // FaultHorizon knows of it
    default: return false;
  }
  add(static_cast<int64_t>(event.kind));
  add(event.time);
  return true;
}

// A flow that waits for its rate has no forecast, but every other has one.
void WorldState::add_flows() {
  std::vector<LinkIndex> links;
  for (const uint32_t index : flows_) {
    const FlowNetwork::Flow& flow = world_.links.flows_.flows_[index];
    add_bits(flow.remaining_bytes);
    add_bits(flow.rate);
    add(flow.since);
    links.insert(links.end(), flow.links().begin(), flow.links().end());
  }
  // Of flows that share a link, the older ones are looked at first.
  std::vector<uint32_t> by_start = flows_;
  std::ranges::sort(by_start, {},
                    [&](uint32_t flow) { return world_.links.flows_.flows_[flow].order; });
  for (const uint32_t flow : by_start) {
    add(flow_place_[flow]);
  }
  end_list();
  std::ranges::sort(links);
  links.erase(std::unique(links.begin(), links.end()), links.end());
  for (const LinkIndex link : links) {
    for (const uint32_t flow : world_.links.flows_.links_[link].flows) {
      add(flow_place_[flow]);
    }
    end_list();
  }
}

}  // namespace lockstep::sim
