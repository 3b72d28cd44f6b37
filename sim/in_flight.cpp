#include "sim/in_flight.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::sim {

InFlight::InFlight(std::vector<RankState>& ranks, Agenda& agenda, Journal* journal,
                   StepObserver* steps)
    : ranks_(ranks), agenda_(agenda), steps_(steps), journal_(journal) {}

uint32_t InFlight::make_part(RankState& rank, const Op& op, Ticket ticket) {
  const uint32_t index = parts_.take(rank.index);
  Part& part = parts_[index];
  part.op = op;
  part.rank = rank.index;
  part.ticket = ticket;
  part.issue = rank.running->host;
  part.unresolved = 0;
  const OpLists& lists = op.list();
  part.op.lists = nullptr;
  if (!lists.reads.empty() || !lists.writes.empty() || !lists.splits.empty()) {
    part.op.lists = parts_.lists().take(lists);
    rank.buffers->hold(lists.reads);
    rank.buffers->hold(lists.writes);
  }
  return index;
}

// Takes a ticket into account: its finish when known, else as something the part waits for.
bool InFlight::depend_on(RankState& rank, Ticket ticket, Waiters::Order order, Pending& pending) {
  if (order == Waiters::Order::after && has_failed(rank, ticket)) {
    pending.failed = true;
  }
  TicketRing& ring = rank.lanes[ticket.lane.value]->tickets;
  if (ring.retired(ticket.sequence)) {
    return true;
  }
  TicketState& state = ring.state(ticket.sequence);
  if (state.known()) {
    pending.ready = std::max(pending.ready, state.finish);
    return true;
  }
  if (pending.part == no_index) {
    pending.part = make_part(rank, pending.op, pending.ticket);
  }
  waiters_.add_part(state, rank.index, pending.part, order);
  ++parts_[pending.part].unresolved;
  return false;
}

uint32_t InFlight::keep(RankState& rank, const Pending& pending) {
  const uint32_t index =
      pending.part == no_index ? make_part(rank, pending.op, pending.ticket) : pending.part;
  Part& part = parts_[index];
  part.ready = pending.ready;
  part.failed = pending.failed;
  return index;
}

void InFlight::launch_in_order_behind(size_t count) {
  std::reverse(ready_.begin() + count, ready_.end());
}

// Ends

void InFlight::finish_part(uint32_t index, Time start, Time finish) {
  const Part& part = parts_[index];
  RankState& rank = ranks_[part.rank];
  const Ticket ticket = part.ticket;
  const bool communicates = is_collective(part.op.kind) || is_point_to_point(part.op.kind);
  if (contention_ > 0 && communicates && part.op.stream.device() != host_device) {
    note_beside_kernels(rank.beside, start, finish);
  }
  tell(rank, ticket, part.issue, start, finish);
  forget_part(index);
  close(rank, ticket, finish);
}

// Kernels are taken to follow each other up to the last one of which the end is known: those behind
// it wait for communication.
void InFlight::note_beside_kernels(BesideKernels& beside, Time start, Time finish) const {
  const Time from = std::max(start, beside.communicated_until);
  const Time until = std::min(finish, beside.computes_until);
  beside.communicated_until = std::max(beside.communicated_until, finish);
  if (until > from) {
    const auto both = static_cast<double>((until - from).count());
    beside.lost += Time(std::llround(contention_ * both));
  }
}

void InFlight::fail_part(uint32_t index) {
  const Part& part = parts_[index];
  RankState& rank = ranks_[part.rank];
  const Ticket ticket = part.ticket;
  const Time issue = part.issue;
  const Time ready = part.ready;
  forget_part(index);
  fail(rank, ticket, issue, ready);
}

void InFlight::forget_part(uint32_t index) {
  const Part& part = parts_[index];
  if (const OpLists* lists = part.op.lists; lists != nullptr) {
    BufferTable& buffers = *ranks_[part.rank].buffers;
    buffers.let_go(lists->reads);
    buffers.let_go(lists->writes);
  }
  parts_.give_back(index);
}

void InFlight::fail(RankState& rank, Ticket ticket, Time issue, Time ready) {
  rank.lanes[ticket.lane.value]->tickets.told[ticket.sequence] = {Outcome::failed, {}, {}};
  if (journal_ != nullptr && journal_->options().completions) {
    journal_->lane(static_cast<int32_t>(rank.place.rank.value), ticket.lane)
        .complete(ticket.sequence, {issue, ready, ready, Outcome::failed, {}});
  }
  close(rank, ticket, ready);
}

bool InFlight::has_failed(const RankState& rank, Ticket ticket) const {
  if (!rank.broken) [[likely]] {
    return false;
  }
  const auto& told = rank.lanes[ticket.lane.value]->tickets.told;
  const auto found = told.find(ticket.sequence);
  return found != told.end() && found->second.outcome == Outcome::failed;
}

void InFlight::close(RankState& rank, Ticket ticket, Time finish) {
  TicketState& state = rank.lanes[ticket.lane.value]->tickets.state(ticket.sequence);
  state.finish = std::max(state.finish, finish);
  if (--state.open_parts == 0) {
    if (ticket.lane.value == 0) {
      program_work_ended_ = true;
    }
    if (rank.launched.counting()) {
      rank.launched.finishes(state.finish);
    }
    resolve(state, rank.broken && has_failed(rank, ticket));
    if (!rank.marked_steps.empty()) [[unlikely]] {
      ticket_ended(rank, ticket, *steps_);
    }
  }
}

void InFlight::resolve_waiters(TicketState& ticket, bool failed) {
  uint32_t node = std::exchange(ticket.waiters, no_index);
  const Time finish = ticket.finish;
  while (node != no_index) {
    const Waiters::Waiter waiter = waiters_[node];
    const uint32_t freed = std::exchange(node, waiter.next);
    if (!waiter.is_lane) {
      Part& part = parts_[waiter.target];
      waiters_.give_back(part.rank, freed);
      part.ready = std::max(part.ready, finish);
      part.failed = part.failed ||
                    (failed && waiter.generation == static_cast<uint32_t>(Waiters::Order::after));
      if (--part.unresolved == 0) {
        ready_.push_back(waiter.target);
      }
      continue;
    }
    LaneState& lane = lane_at(ranks_, waiter.target);
    waiters_.give_back(lane.rank_index, freed);
    if (lane.waiting && lane.generation == waiter.generation) {
      resolve_lane(lane, finish);
    }
  }
}

void InFlight::resolve_lane(LaneState& lane, Time finish) {
  if (lane.until == Until::any) {
    agenda_.push(std::max(finish, lane.host), Agenda::Kind::lane, index_of(lane), lane.generation);
    return;
  }
  lane.ready = std::max(lane.ready, finish);
  if (--lane.unresolved == 0) {
    agenda_.push(lane.ready, Agenda::Kind::lane, index_of(lane), lane.generation);
  }
}

void InFlight::tell(RankState& rank, Ticket ticket, Time issue, Time start, Time finish) {
  if (journal_ == nullptr || !journal_->options().completions) {
    return;
  }
  LaneJournal& rows = journal_->lane(static_cast<int32_t>(rank.place.rank.value), ticket.lane);
  const Completion known = rows.completion(ticket.sequence);
  const Time skipped = rank.skipped == Time{} ? Time{} : rank.skipped_time(ticket);
  // Of a grouped call: it waits until the other side of its last part is there.
  if (known.outcome == Outcome::ok) {
    start = std::max(start, known.start - skipped);
    finish = std::max(finish, known.finish - skipped);
  }
  rows.complete(ticket.sequence,
                {issue + skipped, start + skipped, finish + skipped, Outcome::ok, {}});
}

// A grouped call of which only some parts have finished has not ended.
void InFlight::tell_unfinished() {
  if (journal_ == nullptr || !journal_->options().completions) {
    return;
  }
  for (const RankState& rank : ranks_) {
    const auto number = static_cast<int32_t>(rank.place.rank.value);
    for (const auto& lane : rank.lanes) {
      const TicketRing& tickets = lane->tickets;
      LaneJournal& rows = journal_->lane(number, lane->lane.id());
      for (uint32_t ticket = tickets.low_water(); ticket < tickets.next(); ++ticket) {
        Completion completion = rows.completion(ticket);
        if (!tickets.state(ticket).known() && completion.outcome == Outcome::ok) {
          completion.outcome = Outcome::pending;
          rows.complete(ticket, completion);
        }
      }
    }
  }
}

}  // namespace lockstep::sim
