#include "sim/engine.hpp"

#include <algorithm>

#include "model/network/execute.hpp"
#include "sim/sim_port.hpp"

namespace lockstep::sim {

namespace {

class TableOperands final : public Operands {
 public:
  explicit TableOperands(BufferTable& buffers) : buffers_(buffers) {}
  Values load(const Slice& from) override { return buffers_.load(from); }
  void store(const Slice& to, const Values& values) override { buffers_.store(to, values); }

 private:
  BufferTable& buffers_;
};

bool must_stop(const SimulationOptions& simulation, uint64_t turn) {
  return turn % 1024 == 0 && simulation.stop_asked && simulation.stop_asked();
}

}  // namespace

Engine::Engine(const RunOptions& options, const SimulationOptions& simulation, Journal* journal)
    : options_(options),
      simulation_(simulation),
      journal_(journal),
      events_(simulation.tie_seed),
      flows_(simulation.communication->link_capacities()) {
  world_.resize(static_cast<size_t>(options.world_size));
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    world_[static_cast<size_t>(rank)] = rank;
  }
  communicators_.emplace_back();
  ranks.resize(static_cast<size_t>(options.world_size));
  for (int32_t number = 0; number < options.world_size; ++number) {
    if (must_stop(simulation, static_cast<uint64_t>(number))) {
      throw WorldGivenUp();
    }
    RankState& rank = ranks[static_cast<size_t>(number)];
    rank.place = place_of(options, number);
    rank.buffers = std::make_unique<BufferTable>(options.numerics, options.device_memory);
    rank.groups.push_back({0, number, 0});
    rank.port = std::make_unique<SimPort>(*this, rank);
    rank.stack =
        std::make_unique<RankStack>(*rank.port, options_, journal_, &board_, rank.port.get());
  }
  for (const auto& [rank, time] : simulation.lost_ranks) {
    Time& lost_at = ranks[static_cast<size_t>(rank)].lost_at;
    lost_at = std::min(lost_at, time);
  }
}

Engine::~Engine() = default;

void Engine::run(const ProgramOfRank& program) {
  begin_link_faults();
  for (RankState& rank : ranks) {
    start_lane(rank, program(rank.stack->rank()));
  }
  for (uint64_t handled = 1; !events_.empty() && !must_stop(simulation_, handled); ++handled) {
    handle(events_.pop());
  }
  tell_unfinished();
}

// A grouped call of which only some parts have finished has not ended.
void Engine::tell_unfinished() {
  if (journal_ == nullptr || !journal_->options().completions) {
    return;
  }
  for (const RankState& rank : ranks) {
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

void Engine::unwind() {
  if (journal_ != nullptr) {
    journal_->close();
  }
  for (RankState& rank : ranks) {
    rank.sealed = true;
    rank.lanes.clear();
  }
}

void Engine::push(Time time, EventKind kind, uint64_t index, uint32_t generation) {
  events_.push(time, static_cast<uint64_t>(kind) << 60 |
                         (uint64_t{generation} & generation_mask) << 32 | index);
}

void Engine::handle(const Event& event) {
  now_ = event.time;
  const auto index = static_cast<uint32_t>(event.target);
  const auto generation = static_cast<uint32_t>(event.target >> 32 & generation_mask);
  switch (static_cast<EventKind>(event.target >> 60)) {
    case EventKind::lane: {
      RankState& rank = ranks[index >> lane_bits];
      LaneState& lane = *rank.lanes[index & ((1u << lane_bits) - 1)];
      if (lane.waiting && (lane.generation & generation_mask) == generation) {
        resume(rank, lane, event.time);
      }
      break;
    }
    case EventKind::flow_start: {
      strike(transfers_[index].plan);
      const uint32_t flow = flows_.start(now_, transfers_[index].plan, forecasts_);
      if (transfer_of_flow_.size() <= flow) {
        transfer_of_flow_.resize(flow + 1);
      }
      transfer_of_flow_[flow] = index;
      push_forecasts();
      break;
    }
    case EventKind::flow_finish:
      if (flows_.finish(now_, index, generation, forecasts_)) {
        push_forecasts();
        const Transfer transfer = transfers_[transfer_of_flow_[index]];
        free_transfers_.push_back(transfer_of_flow_[index]);
        end_transfer(transfer, now_ + transfer.plan.latency);
      }
      break;
    case EventKind::any_source: match_any_source(index); break;
    case EventKind::link_slow: handle_link(index, true); break;
    case EventKind::link_free: handle_link(index, false); break;
  }
  drain();
}

void Engine::push_forecasts() {
  for (const FlowNetwork::Forecast& forecast : forecasts_) {
    push(forecast.finish, EventKind::flow_finish, forecast.flow, forecast.generation);
  }
  forecasts_.clear();
}

// Submissions

Ticket Engine::submit(RankState& rank, std::span<const Op> ops) {
  LaneState& lane = *rank.running;
  lane.host += simulation_.launch_overhead;
  operations_ += static_cast<int64_t>(ops.size());
  if (lane.tickets.in_flight() >= static_cast<uint32_t>(options_.launch_queue)) {
    // The launch queue is full: the host goes on when the oldest operation has finished. When that
    // depends on a peer the time is not known yet, and the host is not held back.
    const TicketState& oldest = lane.tickets.state(lane.tickets.low_water());
    if (oldest.known()) {
      lane.host = std::max(lane.host, oldest.finish);
    }
    lane.tickets.retire(lane.host);
  }
  const Ticket ticket = lane.tickets.open(lane.lane.id(), static_cast<uint32_t>(ops.size()));
  for (const Op& op : ops) {
    submit_part(rank, lane, op, ticket);
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
  const uint32_t index = parts_.take();
  Part& part = parts_[index];
  part.op = op;
  part.rank = rank.place.rank.value;
  part.ticket = ticket;
  part.issue = rank.running->host;
  part.unresolved = 0;
  const OpLists& lists = op.list();
  part.op.lists = nullptr;
  if (!lists.reads.empty() || !lists.writes.empty() || !lists.splits.empty()) {
    part.lists = std::make_unique<OwnedLists>(lists);
    part.op.lists = &part.lists->views;
  }
  return index;
}

uint32_t Engine::take_waiter() {
  if (free_waiter_ == no_index) {
    waiters_.emplace_back();
    return static_cast<uint32_t>(waiters_.size() - 1);
  }
  const uint32_t node = free_waiter_;
  free_waiter_ = waiters_[node].next;
  return node;
}

void Engine::add_waiter(TicketState& state, uint32_t target) {
  const uint32_t node = take_waiter();
  waiters_[node] = {state.waiters, target, 0, nullptr};
  state.waiters = node;
}

// Takes a ticket into account: its finish when known, else as something the part waits for.
bool Engine::depend_on(RankState& rank, Ticket ticket, Time& ready, uint32_t& part, const Op& op,
                       Ticket own) {
  TicketRing& ring = rank.lanes[ticket.lane.value]->tickets;
  if (ring.retired(ticket.sequence)) {
    return true;
  }
  TicketState& state = ring.state(ticket.sequence);
  if (state.known()) {
    ready = std::max(ready, state.finish);
    return true;
  }
  if (part == no_index) {
    part = new_part(rank, op, own);
  }
  add_waiter(state, part);
  ++parts_[part].unresolved;
  return false;
}

void Engine::submit_part(RankState& rank, LaneState& lane, const Op& op, Ticket ticket) {
  if (op.kind == OpKind::host) {
    lane.host += Time(op.work);
    tell(rank, ticket, lane.host, lane.host - Time(op.work), lane.host);
    close_part(rank, ticket, lane.host);
    return;
  }
  Time ready = lane.host;
  uint32_t index = no_index;
  StreamState& stream = rank.stream(op.stream);
  if (stream.known) {
    ready = std::max(ready, stream.finish);
  } else {
    stream.known = depend_on(rank, stream.tail, ready, index, op, ticket);
    stream.finish = stream.known ? ready : Time{};
  }
  for (const Ticket after : op.list().after) {
    if (after) {
      depend_on(rank, after, ready, index, op, ticket);
    }
  }
  const bool local = op.kind == OpKind::compute || op.kind == OpKind::event;
  if (local && index == no_index && ready < rank.lost_at) {
    const Time finish = finish_of_local(rank, op, ready);
    compute_values(rank, op);
    tell(rank, ticket, lane.host, ready, finish);
    close_part(rank, ticket, finish);
    return;
  }
  if (index == no_index) {
    index = new_part(rank, op, ticket);
  }
  Part& part = parts_[index];
  part.ready = ready;
  if (is_collective(op.kind)) {
    enter_call(rank, part);
  } else if (is_point_to_point(op.kind)) {
    post_message(index);
  }
  if (part.unresolved == 0) {
    ready_parts_.push_back(index);
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
    TableOperands operands(*rank.buffers);
    execute_kernel(op, operands, options_.network);
  }
}

void Engine::drain() {
  while (!ready_parts_.empty()) {
    const uint32_t index = ready_parts_.back();
    ready_parts_.pop_back();
    launch(index);
  }
}

void Engine::launch(uint32_t index) {
  Part& part = parts_[index];
  RankState& rank = ranks[part.rank];
  if (part.ready >= rank.lost_at) {
    rank.end = {RankEnd::Kind::lost, no_site, RankLost().what(), false};
    return;  // the rank is gone: the operation never starts
  }
  if (is_collective(part.op.kind)) {
    arrive(index);
  } else if (is_point_to_point(part.op.kind)) {
    message_ready(index);
  } else if (part.op.kind == OpKind::copy) {
    const OpLists& lists = part.op.list();
    const DeviceId from =
        lists.reads.empty() ? host_device : rank.buffers->spec(lists.reads[0].buffer).device;
    const DeviceId to = lists.writes.empty() ? part.op.stream.device()
                                             : rank.buffers->spec(lists.writes[0].buffer).device;
    begin_transfer(
        simulation_.communication->copy(static_cast<int32_t>(part.rank), from, to, part.op.bytes),
        part.ready, index, no_index, false);
  } else {
    const Time finish = finish_of_local(rank, part.op, part.ready);
    compute_values(rank, part.op);
    part_done(index, part.ready, finish);
  }
}

void Engine::part_done(uint32_t index, Time start, Time finish) {
  const Part& part = parts_[index];
  RankState& rank = ranks[part.rank];
  const Ticket ticket = part.ticket;
  tell(rank, ticket, part.issue, start, finish);
  parts_.give_back(index);
  close_part(rank, ticket, finish);
}

void Engine::tell(RankState& rank, Ticket ticket, Time issue, Time start, Time finish) {
  if (journal_ == nullptr || !journal_->options().completions) {
    return;
  }
  LaneJournal& rows = journal_->lane(static_cast<int32_t>(rank.place.rank.value), ticket.lane);
  const Completion known = rows.completion(ticket.sequence);
  if (known.outcome == Outcome::ok) {  // another part of a grouped call
    start = std::min(start, known.start);
    finish = std::max(finish, known.finish);
  }
  rows.complete(ticket.sequence, {issue, start, finish, Outcome::ok, {}});
}

void Engine::close_part(RankState& rank, Ticket ticket, Time finish) {
  TicketState& state = rank.lanes[ticket.lane.value]->tickets.state(ticket.sequence);
  state.finish = std::max(state.finish, finish);
  if (--state.open_parts == 0) {
    resolve(state);
  }
}

void Engine::resolve(TicketState& state) {
  latest_ = std::max(latest_, state.finish);
  uint32_t node = std::exchange(state.waiters, no_index);
  const Time finish = state.finish;
  while (node != no_index) {
    const Waiter waiter = waiters_[node];
    waiters_[node].next = free_waiter_;
    free_waiter_ = node;
    node = waiter.next;
    if (waiter.lane == nullptr) {
      Part& part = parts_[waiter.target];
      part.ready = std::max(part.ready, finish);
      if (--part.unresolved == 0) {
        ready_parts_.push_back(waiter.target);
      }
    } else if (waiter.lane->waiting && waiter.lane->generation == waiter.generation) {
      lane_resolved(*waiter.lane, finish);
    }
  }
}

// Promises

Ticket Engine::promise(RankState& rank) {
  LaneState& lane = *rank.running;
  return lane.tickets.open(lane.lane.id(), 1);
}

void Engine::fulfil(RankState& rank, Ticket promise) {
  tell(rank, promise, rank.running->host, rank.running->host, rank.running->host);
  close_part(rank, promise, rank.running->host);
  drain();
}

}  // namespace lockstep::sim
