// What the lanes of a rank wait for, and what they have submitted that has not ended.
#include <algorithm>

#include "sim/world_state.hpp"

namespace lockstep::sim {

// A program with loops alone looks at nothing that ended before its own clock, and forgets it.
bool WorldState::has_clocks_apart(const RankState& rank) {
  return rank.lanes.size() > 1 || rank.follower != nullptr;
}

// A lane that waits goes on now at the earliest, however long ago it began to.
Time WorldState::clock_of(const RankState& rank, const LaneState& lane) const {
  return lane.waiting && has_clocks_apart(rank) ? std::max(lane.host, world_.agenda.now())
                                                : lane.host;
}

// No lane of the rank looks at what ended before.
Time WorldState::earliest_clock(const RankState& rank) const {
  Time earliest = clock_of(rank, *rank.lanes.front());
  for (const auto& lane : rank.lanes) {
    earliest = lane->lane.done() ? earliest : std::min(earliest, clock_of(rank, *lane));
  }
  return earliest;
}

// Nothing waits for such a ticket, however long ago it ended. Of several lanes one may have an open
// promise for so long that it cannot forget what ended since.
bool WorldState::is_past(const RankState& rank, Ticket ticket) const {
  const TicketRing& tickets = rank.lanes[ticket.lane.value]->tickets;
  if (tickets.retired(ticket.sequence)) {
    return true;
  }
  const TicketState& state = tickets.state(ticket.sequence);
  return has_clocks_apart(rank) && state.known() && state.finish <= earliest_clock(rank);
}

bool WorldState::add_described(const RankState& rank, const LaneState& lane,
                               const DescribedLane& description) {
  const std::optional<LaneMemory> memory = description.memory();
  if (!memory) {
    return false;
  }
  add(lane.lane.id().value);
  add_lane(rank, lane);
  for (const int64_t number : memory->numbers) {
    add(number);
  }
  end_list();
  for (const Ticket ticket : memory->tickets) {
    add_ticket(rank, ticket);
  }
  end_list();
  for (const Slice& slice : memory->values) {
    const Values values = rank.buffers->load(slice);
    for (const std::byte part : values.bytes()) {
      add(static_cast<int64_t>(part));
    }
    end_list();
  }
  add(memory->count - counts_.try_emplace(lane.lane.id().value, memory->count).first->second);
  return true;
}

void WorldState::add_ticket(const RankState& rank, Ticket ticket) {
  if (!ticket) {  // of an eager send, which has ended for its rank
    add(-1);
    return;
  }
  constexpr int64_t past = -2;
  constexpr int64_t promised = -3;
  const TicketRing& tickets = rank.lanes[ticket.lane.value]->tickets;
  add(ticket.lane.value);
  if (const std::optional<int64_t> promise = promise_of(rank, ticket)) {
    add(promised);
    add(*promise);
  } else {
    add(is_past(rank, ticket) ? past : int64_t{tickets.next()} - ticket.sequence);
  }
}

// Which one it is, however long ago it was made; nothing: it is none, or was kept.
std::optional<int64_t> WorldState::promise_of(const RankState& rank, Ticket ticket) {
  const auto found = std::ranges::find(rank.open_promises, ticket);
  return found == rank.open_promises.end() ? std::nullopt
                                           : std::optional(found - rank.open_promises.begin());
}

void WorldState::add_lane(const RankState& rank, const LaneState& lane) {
  const Time clock = clock_of(rank, lane);
  add(clock);
  add(lane.waiting ? 1 : 0);
  if (lane.waiting) {
    add(static_cast<int64_t>(lane.until));
    add(lane.unresolved);
    add(std::max(lane.ready, clock));
    for (const Ticket ticket : lane.awaited) {
      add_ticket(rank, ticket);
    }
    end_list();
  }
  add(std::ssize(lane.holds));
  for (const Hold& hold : lane.holds) {
    add_ticket(rank, hold.until);
  }
}

// What has finished by the time of the rank's host delays nothing any more.
void WorldState::add_tickets(const RankState& rank, const LaneState& lane, Time host) {
  const TicketRing& tickets = lane.tickets;
  for (uint32_t sequence = tickets.low_water(); sequence < tickets.next(); ++sequence) {
    const TicketState& state = tickets.state(sequence);
    if (state.known() && state.finish <= host) {
      continue;
    }
    add_ticket(rank, {sequence, lane.lane.id()});
    add(state.open_parts);
    if (state.known()) {
      add(state.finish);
    } else {
      add(state.finish == Time{} ? 0 : 1);  // no part of it has finished, or some have
      add(state.finish == Time{} ? origin_ : state.finish);
    }
    Waiters& waiters = world_.in_flight.waiters_;
    for (uint32_t node = state.waiters; node != no_index; node = waiters[node].next) {
      const Waiters::Waiter& waiter = waiters[node];
      if (!waiter.is_lane) {
        add(waiter.generation);  // its order
        add_part(waiter.target);
        continue;
      }
      const LaneState& waiting = lane_at(world_.ranks, waiter.target);
      if (waiting.waiting && waiting.generation == waiter.generation) {
        add(waiting.lane.id().value);
      }
    }
    end_list();
  }
  end_list();
}

}  // namespace lockstep::sim
