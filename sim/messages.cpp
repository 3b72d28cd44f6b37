#include "sim/messages.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace lockstep::sim {

Messages::Messages(const RunOptions& options, const SimulationOptions& simulation,
                   std::vector<RankState>& ranks, InFlight& in_flight, Agenda& agenda,
                   std::string& ranks_differ)
    : options_(options),
      any_source_last_(simulation.any_source_last),
      ranks_(ranks),
      in_flight_(in_flight),
      agenda_(agenda),
      ranks_differ_(ranks_differ),
      any_source_(simulation, ranks, in_flight, agenda, channels_) {}

// Or, where every rank is simulated, between any two.
bool Messages::is_between_neighbours(const Part& part) const {
  const RankClasses* const classes = options_.classes.get();
  return classes == nullptr ||
         (part.op.peer >= 0 && !options_.any_source && classes->is_first(part.op.peer) &&
          classes->are_neighbours(part.rank, classes->of(static_cast<size_t>(part.op.peer))));
}

void Messages::post(uint32_t index) {
  Part& part = in_flight_[index];
  if (!is_between_neighbours(part)) {
    ranks_differ_ = "a message names its sender and receiver";
    return;
  }
  const RankState& rank = ranks_[part.rank];
  const auto self = static_cast<int32_t>(rank.place.rank.value);
  ensure(part.op.group.value < rank.groups.size(), "a group is used after it was made");
  const uint32_t communicator = rank.groups[part.op.group.value].communicator;
  if (part.op.kind == OpKind::recv && part.op.peer == any_rank) {
    if (!options_.any_source) {
      throw ProgramException(part.op.site, "NCCL has no receive from any source");
    }
    any_source_.post_receive(index);
    return;
  }
  const bool sends = part.op.kind == OpKind::send;
  Channel& here = sends ? channels_.of(communicator, self, part.op.peer, part.op.tag)
                        : channels_.of(communicator, part.op.peer, self, part.op.tag);
  auto& waiting = sends ? here.receives : here.sends;
  if (waiting.empty()) {
    (sends ? here.sends : here.receives).push_back(index);
    return;
  }
  const uint32_t partner = waiting.front();
  waiting.pop_front();
  part.partner = partner;
  in_flight_[partner].partner = index;
  if (!sends && options_.any_source) {
    any_source_.forget_send(part.rank, partner);
  }
}

std::optional<Transfer> Messages::ready(uint32_t index) {
  Part& part = in_flight_[index];
  part.next = index;  // marks it as ready
  if (part.op.kind == OpKind::send) {
    if (options_.eager_limit > Bytes{} && part.op.bytes <= options_.eager_limit) {
      leave_eagerly(index);
    }
    if (part.partner == no_index && options_.any_source) {
      any_source_.send_is_ready(index);
    }
  } else if (part.op.peer == any_rank) {
    any_source_.receive_is_ready(index);
    return std::nullopt;
  }
  if (part.partner == no_index || in_flight_[part.partner].next != part.partner) {
    return std::nullopt;
  }
  return part.op.kind == OpKind::send ? transfer_of({index, part.partner})
                                      : transfer_of({part.partner, index});
}

// An eager send returns before its receive is posted: the message waits at the receiver.
void Messages::leave_eagerly(uint32_t index) {
  Part& part = in_flight_[index];
  RankState& rank = ranks_[part.rank];
  const OpLists& lists = part.op.list();
  if (!lists.reads.empty()) {
    captured_.insert_or_assign(index, rank.buffers->load(lists.reads[0]));
  }
  in_flight_.tell(rank, part.ticket, part.issue, part.ready, part.ready);
  in_flight_.close(rank, std::exchange(part.ticket, Ticket{}), part.ready);
}

// A receive from any source may take a message long after both were ready: never before now, or
// the clock would go back behind what has happened since.
std::optional<Transfer> Messages::transfer_of(const AnySource::Match& match) {
  const Part& from = in_flight_[match.send];
  const Part& to = in_flight_[match.receive];
  if (from.op.bytes != to.op.bytes) {
    return std::nullopt;
  }
  return Transfer{std::max({from.ready, to.ready, agenda_.now()}), match.send, match.receive,
                  false};
}

void Messages::deliver(const Transfer& message, Time finish) {
  const uint32_t send = message.first;
  const uint32_t receive = message.second;
  const Part& from = in_flight_[send];
  const Part& to = in_flight_[receive];
  const OpLists& sent = from.op.list();
  const OpLists& received = to.op.list();
  if (!sent.reads.empty() && !received.writes.empty()) {
    Values values =
        from.ticket ? ranks_[from.rank].buffers->load(sent.reads[0]) : std::move(captured_[send]);
    if (!values.empty() && values.dtype() != received.writes[0].dtype) {
      Values typed(received.writes[0].dtype, received.writes[0].elements);
      std::copy(values.bytes().begin(), values.bytes().end(), typed.bytes().begin());
      values = std::move(typed);
    }
    ranks_[to.rank].buffers->store(received.writes[0], values);
  }
  if (to.op.peer == any_rank) {
    ranks_[to.rank].lanes[to.ticket.lane.value]->tickets.told[to.ticket.sequence] = {
        Outcome::ok, RankId{from.rank}, from.op.bytes};
  }
  if (from.ticket) {
    in_flight_.finish_part(send, message.start, finish);
  } else {
    captured_.erase(send);
    in_flight_.forget_part(send);
  }
  in_flight_.finish_part(receive, message.start, finish);
}

std::vector<Transfer> Messages::match_any_source(uint32_t destination) {
  std::vector<Transfer> transfers;
  if (any_source_last_) {
    any_source_.hold(destination);
    return transfers;
  }
  for (const AnySource::Match& match : any_source_.match(destination)) {
    if (const std::optional<Transfer> transfer = transfer_of(match)) {
      transfers.push_back(*transfer);
    }
  }
  return transfers;
}

std::optional<Transfer> Messages::match_held() {
  const std::optional<AnySource::Match> match = any_source_.match_held();
  return match ? transfer_of(*match) : std::nullopt;
}

}  // namespace lockstep::sim
