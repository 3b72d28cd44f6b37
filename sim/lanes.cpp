// Lanes of the simulated world: when a host thread runs, and what it waits for.
#include <algorithm>

#include "sim/engine.hpp"

namespace lockstep::sim {

Lane& Engine::start_lane(RankState& rank, Program program) {
  const auto number = static_cast<uint16_t>(rank.lanes.size());
  ensure(number < (1u << lane_bits), "a rank has less than 1024 lanes");
  rank.lanes.push_back(
      std::make_unique<LaneState>(rank.place.rank, rank.index, LaneId{number}, std::move(program)));
  LaneState& lane = *rank.lanes.back();
  lane.host = rank.running != nullptr ? rank.running->host : agenda_.now();
  lane.waiting = true;
  lane.skip_until(rank.skipped);
  agenda_.push(lane.host, Agenda::Kind::lane, index_of(lane), lane.generation);
  return lane.lane;
}

void Engine::resume(RankState& rank, LaneState& lane, Time time) {
  if (rank.end.kind == RankEnd::Kind::lost) {
    return;  // a lost rank falls silent as a whole
  }
  if (time >= rank.lost_at) {
    rank.end = {RankEnd::Kind::lost, no_site, RankLost().what(), false};
    return;
  }
  if (lane.lane.id().value == 0) {
    thread_watch_.program_goes_on();
  }
  lane.host = std::max(lane.host, time);
  lane.waiting = false;
  lane.awaited.clear();
  lane.tickets.retire(lane.host);
  rank.running = &lane;
  lane.lane.resume();
  rank.running = nullptr;
  agenda_.lasts_until(lane.host);
  if (lane.lane.done()) {
    LaunchLimit::holds(rank, lane);
    end_lane(rank, lane);
  }
}

void Engine::end_lane(RankState& rank, LaneState& lane) {
  const RankEnd end = end_of(lane.lane.failure());
  if (lane.lane.id().value == 0 || end.kind != RankEnd::Kind::finished) {
    rank.end = end;
  }
  if (lane.lane.id().value == 0) {
    rank.follower = nullptr;  // it may have ended with the program
  }
  ends_ = ends_ || (end.out_of_memory && simulation_.memory_alone);
  if (journal_ != nullptr && end.kind != RankEnd::Kind::lost) {
    Row row;
    row.row = end.kind == RankEnd::Kind::finished ? RowKind::finish : RowKind::raise;
    row.site = end.site;
    journal_->append(static_cast<int32_t>(rank.place.rank.value), lane.lane.id(), row);
  }
}

void Engine::wait_begins(RankState& rank, std::span<const Ticket> tickets, Until until) {
  // The only lane of a rank may run ahead of the others when it knows how long it would wait.
  if (until == Until::any || rank.lanes.size() > 1) {
    return;
  }
  LaneState& lane = *rank.running;
  if (!lane.holds.empty() && LaunchLimit::holds(rank, lane)) {
    return;
  }
  Time ready = lane.host;
  for (const Ticket ticket : tickets) {
    if (!lane.tickets.retired(ticket.sequence)) {
      const TicketState& state = lane.tickets.state(ticket.sequence);
      if (!state.known()) {
        return;
      }
      ready = std::max(ready, state.finish);
    }
  }
  if (ready < rank.lost_at) {
    lane.host = ready;
    lane.tickets.retire(lane.host);
  }
}

bool Engine::settled(const RankState& rank, Ticket ticket) const {
  const TicketRing& ring = rank.lanes[ticket.lane.value]->tickets;
  if (ring.retired(ticket.sequence)) {
    return true;
  }
  const TicketState& state = ring.state(ticket.sequence);
  const Time host = rank.running != nullptr ? rank.running->host : agenda_.now();
  return state.known() && state.finish <= host;
}

Status Engine::status(const RankState& rank, Ticket ticket) const {
  const TicketRing& ring = rank.lanes[ticket.lane.value]->tickets;
  const auto told = ring.told.find(ticket.sequence);
  if (told != ring.told.end()) {
    return told->second;
  }
  return {settled(rank, ticket) ? Outcome::ok : Outcome::pending, {}, {}};
}

void Engine::suspend(RankState& rank, std::span<const Ticket> tickets, Until until,
                     LaneState& lane) {
  lane.waiting = true;
  lane.until = until;
  lane.unresolved = 0;
  lane.ready = lane.host;
  ++lane.generation;
  lane.awaited.assign(tickets.begin(), tickets.end());
  for (const Ticket ticket : tickets) {
    TicketRing& ring = rank.lanes[ticket.lane.value]->tickets;
    const bool retired = ring.retired(ticket.sequence);
    if (retired || ring.state(ticket.sequence).known()) {
      const Time finish = retired ? lane.host : ring.state(ticket.sequence).finish;
      lane.ready = std::max(lane.ready, finish);
      if (until == Until::any) {
        agenda_.push(std::max(finish, lane.host), Agenda::Kind::lane, index_of(lane),
                     lane.generation);
      }
    } else {
      TicketState& state = ring.state(ticket.sequence);
      if (until == Until::any) {
        in_flight_.forget_stale_waiters(state, lane);
      }
      in_flight_.wait(state, lane);
    }
  }
  if (until == Until::all && !lane.holds.empty() && LaunchLimit::holds(rank, lane)) {
    // All of them: those of different streams do not end in the order in which they began.
    for (const Hold& hold : lane.holds) {
      TicketRing& ring = rank.lanes[hold.until.lane.value]->tickets;
      TicketState& state = ring.state(hold.until.sequence);
      if (ring.retired(hold.until.sequence) || state.known()) {
        continue;  // `holds` takes its end over
      }
      in_flight_.wait(state, lane);
    }
  }
  if (until != Until::all || lane.unresolved > 0) {
    return;
  }
  if (tickets.empty()) {  // it waits for what others do until then
    agenda_.push_last(lane.ready, Agenda::Kind::lane, index_of(lane), lane.generation);
  } else {
    agenda_.push(lane.ready, Agenda::Kind::lane, index_of(lane), lane.generation);
  }
}

}  // namespace lockstep::sim
