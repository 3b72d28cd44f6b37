// A submission becomes a time at once if everything before it is known, else a part
// that waits.
#include <algorithm>

#include "model/network/execute.hpp"
#include "sim/engine.hpp"

namespace lockstep::sim {

namespace {

class TableOperands final : public Operands {
 public:
  explicit TableOperands(RankState& rank) : rank_(rank) {}
  Values load(const Slice& from) override { return rank_.buffers->load(from); }
  void store(const Slice& to, const Values& values) override { rank_.buffers->store(to, values); }
  UpdateSensitivity* sensitivity_of(const Slice& parameter) override {
    return &rank_.sensitivities[{parameter.buffer.value, parameter.begin}];
  }

 private:
  RankState& rank_;
};

}  // namespace

Ticket Engine::submit(RankState& rank, std::span<const Op> ops) {
  LaneState& lane = *rank.running;
  lane.host += simulation_.launch_overhead;
  operations_ += static_cast<int64_t>(ops.size()) * rank.stands_for;
  simulated_operations_ += static_cast<int64_t>(ops.size());
  const bool near_limit =
      lane.tickets.in_flight() >= static_cast<uint32_t>(options_.launch_queue) ||
      rank.launched.counting() || rank.lanes.size() > 1;
  if (near_limit && ops.front().kind != OpKind::host) [[unlikely]] {
    make_room(rank, lane);
  }
  const Ticket ticket = lane.tickets.open(lane.lane.id(), static_cast<uint32_t>(ops.size()));
  if (rank.launched.counting()) {
    rank.launched.submitted();
  }
  for (const Op& op : ops) {
    submit_part(rank, lane, op, ticket);
  }
  if (simulation_.leaves_out_periods) {
    for (const Op& op : ops) {
      note_submitted(rank, op);
    }
  }
  const TicketState& state = lane.tickets.state(ticket.sequence);
  for (const Op& op : ops) {
    if (op.kind != OpKind::host) {
      StreamState& stream = rank.stream(op.stream);
      stream.tail = ticket;
      stream.known = state.known();
      stream.finish = state.finish;
    }
  }
  if (!ready_parts_.empty()) {
    drain();
  }
  return ticket;
}

uint32_t Engine::new_part(RankState& rank, const Op& op, Ticket ticket) {
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
    part.lists = parts_.lists().take(lists);
    part.op.lists = &part.lists->views();
    rank.buffers->hold(lists.reads);
    rank.buffers->hold(lists.writes);
  }
  return index;
}

void Engine::add_waiter(TicketState& state, uint32_t target, Order order) {
  const uint32_t node = waiters_.take(parts_[target].rank);
  waiters_[node] = {state.waiters, target, static_cast<uint32_t>(order), false};
  state.waiters = node;
}

// Takes a ticket into account: its finish when known, else as something the part waits for.
bool Engine::depend_on(RankState& rank, Ticket ticket, Order order, Pending& pending) {
  if (order == Order::after && has_failed(rank, ticket)) {
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
    pending.part = new_part(rank, pending.op, pending.ticket);
  }
  add_waiter(state, pending.part, order);
  ++parts_[pending.part].unresolved;
  return false;
}

void Engine::submit_part(RankState& rank, LaneState& lane, const Op& op, Ticket ticket) {
  if (op.kind == OpKind::host) {
    lane.host += Time(op.work);
    tell(rank, ticket, lane.host, lane.host - Time(op.work), lane.host);
    close_part(rank, ticket, lane.host);
    return;
  }
  Pending pending{op, ticket, lane.host};
  StreamState& stream = rank.stream(op.stream);
  if (stream.known) {
    pending.ready = std::max(pending.ready, stream.finish);
  } else {
    stream.known = depend_on(rank, stream.tail, Order::stream, pending);
    stream.finish = stream.known ? pending.ready : Time{};
  }
  for (const Ticket after : op.list().after) {
    if (after) {
      depend_on(rank, after, Order::after, pending);
    }
  }
  if (!lane.holds.empty()) [[unlikely]] {
    depend_on(rank, lane.holds.back().until, Order::stream, pending);
  }
  const bool local = op.kind == OpKind::compute || op.kind == OpKind::event;
  if (local && pending.part == no_index && pending.ready < rank.lost_at && !pending.failed) {
    const Time finish = finish_of_local(rank, op, pending.ready);
    try {
      compute_values(rank, op);
    } catch (const std::exception&) {
      note_broken(rank, op.site);
      return fail(rank, ticket, lane.host, pending.ready);
    }
    tell(rank, ticket, lane.host, pending.ready, finish);
    close_part(rank, ticket, finish);
    return;
  }
  if (pending.part == no_index) {
    pending.part = new_part(rank, op, ticket);
  }
  Part& part = parts_[pending.part];
  part.ready = pending.ready;
  part.failed = pending.failed;
  if (is_collective(op.kind)) {
    enter_call(rank, part);
  } else if (is_point_to_point(op.kind)) {
    post_message(pending.part);
  }
  if (part.unresolved == 0) {
    ready_parts_.push_back(pending.part);
  }
}

Time Engine::finish_of_local(RankState& rank, const Op& op, Time ready) {
  if (op.kind == OpKind::event) {
    return ready;
  }
  return ready + simulation_.compute->duration(op, rank.place.rank, ready);
}

void Engine::compute_values(RankState& rank, const Op& op) {
  if (op.lists != nullptr && !op.lists->writes.empty()) {
    TableOperands operands(rank);
    execute_kernel(op, operands, options_.network);
  }
}

// Outcomes of tickets

bool Engine::has_failed(const RankState& rank, Ticket ticket) const {
  if (!rank.broken) [[likely]] {
    return false;
  }
  const auto& told = rank.lanes[ticket.lane.value]->tickets.told;
  const auto found = told.find(ticket.sequence);
  return found != told.end() && found->second.outcome == Outcome::failed;
}

void Engine::tell(RankState& rank, Ticket ticket, Time issue, Time start, Time finish) {
  if (journal_ == nullptr || !journal_->options().completions) {
    return;
  }
  LaneJournal& rows = journal_->lane(static_cast<int32_t>(rank.place.rank.value), ticket.lane);
  const Completion known = rows.completion(ticket.sequence);
  const Time skipped = rank.skipped_times.empty() ? Time{} : rank.skipped_time(ticket);
  // Of a grouped call: it waits until the other side of its last part is there.
  if (known.outcome == Outcome::ok) {
    start = std::max(start, known.start - skipped);
    finish = std::max(finish, known.finish - skipped);
  }
  rows.complete(ticket.sequence,
                {issue + skipped, start + skipped, finish + skipped, Outcome::ok, {}});
}

void Engine::resolve(TicketState& state, bool failed) {
  latest_ = std::max(latest_, state.finish);
  uint32_t node = std::exchange(state.waiters, no_index);
  const Time finish = state.finish;
  while (node != no_index) {
    const Waiter waiter = waiters_[node];
    const uint32_t freed = std::exchange(node, waiter.next);
    if (!waiter.is_lane) {
      Part& part = parts_[waiter.target];
      waiters_.give_back(part.rank, freed);
      part.ready = std::max(part.ready, finish);
      part.failed =
          part.failed || (failed && waiter.generation == static_cast<uint32_t>(Order::after));
      if (--part.unresolved == 0) {
        ready_parts_.push_back(waiter.target);
      }
      continue;
    }
    LaneState& lane = lane_of(waiter.target);
    waiters_.give_back(lane.rank_index, freed);
    if (lane.waiting && lane.generation == waiter.generation) {
      lane_resolved(lane, finish);
    }
  }
}

void Engine::close_part(RankState& rank, Ticket ticket, Time finish) {
  TicketState& state = rank.lanes[ticket.lane.value]->tickets.state(ticket.sequence);
  state.finish = std::max(state.finish, finish);
  if (--state.open_parts == 0) {
    if (rank.launched.counting()) {
      rank.launched.finishes(state.finish);
    }
    resolve(state, rank.broken && has_failed(rank, ticket));
    if (!rank.marked_steps.empty()) [[unlikely]] {
      ticket_ended(rank, ticket, *simulation_.steps);
    }
  }
}

}  // namespace lockstep::sim
