#include "backend/rank/ticket_table.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

Ticket TicketTable::add(LaneId lane, Time issue) {
  if (lanes_.size() <= lane.value) {
    lanes_.resize(size_t{lane.value} + 1);
  }
  State fresh;
  fresh.completion.issue = issue;
  lanes_[lane.value].push_back(fresh);
  return {static_cast<uint32_t>(lanes_[lane.value].size()), lane};
}

const TicketTable::State& TicketTable::state(Ticket ticket) const {
  ensure(ticket.lane.value < lanes_.size() && ticket.sequence > 0 &&
             ticket.sequence <= lanes_[ticket.lane.value].size(),
         "a ticket of this rank");
  return lanes_[ticket.lane.value][ticket.sequence - 1];
}

TicketTable::State& TicketTable::state(Ticket ticket) {
  return const_cast<State&>(std::as_const(*this).state(ticket));
}

void TicketTable::start(Ticket ticket, Time now) { state(ticket).completion.start = now; }

bool TicketTable::settle(Ticket ticket, const Status& status, Time now) {
  State& settled = state(ticket);
  if (settled.completion.outcome != Outcome::pending) {
    return false;
  }
  settled.completion.finish = now;
  settled.completion.outcome = status.outcome;
  settled.completion.source = status.source;
  settled.bytes = status.bytes;
  if (follower_ != nullptr) {
    follower_->completed(ticket, settled.completion);
  }
  return true;
}

void TicketTable::end_pending(Outcome outcome) {
  for (auto& lane : lanes_) {
    for (State& ticket : lane) {
      if (ticket.completion.outcome == Outcome::pending) {
        ticket.completion.outcome = outcome;
      }
    }
  }
}

bool TicketTable::settled(Ticket ticket) const {
  return !ticket || state(ticket).completion.outcome != Outcome::pending;
}

bool TicketTable::settled(std::span<const Ticket> tickets, Until until) const {
  const auto is_settled = [this](Ticket ticket) { return settled(ticket); };
  return until == Until::all ? std::all_of(tickets.begin(), tickets.end(), is_settled)
                             : std::any_of(tickets.begin(), tickets.end(), is_settled);
}

Status TicketTable::status(Ticket ticket) const {
  if (!ticket) {
    return {Outcome::ok, {}, {}};
  }
  const State& found = state(ticket);
  return {found.completion.outcome, found.completion.source, found.bytes};
}

std::optional<Ticket> TicketTable::oldest_pending() const {
  std::optional<Ticket> oldest;
  Time issued = Time::max();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    for (size_t index = 0; index < lanes_[lane].size(); ++index) {
      const Completion& completion = lanes_[lane][index].completion;
      if (completion.outcome == Outcome::pending && completion.issue < issued) {
        issued = completion.issue;
        oldest = Ticket{static_cast<uint32_t>(index + 1), LaneId{static_cast<uint16_t>(lane)}};
        break;
      }
    }
  }
  return oldest;
}

void TicketTable::write_to(Journal& journal, int32_t rank) const {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    LaneJournal& rows = journal.lane(rank, LaneId{static_cast<uint16_t>(lane)});
    for (size_t index = 0; index < lanes_[lane].size(); ++index) {
      rows.complete(static_cast<uint32_t>(index + 1), lanes_[lane][index].completion);
    }
  }
}

}  // namespace lockstep::backend
