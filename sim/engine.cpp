#include "sim/engine.hpp"

#include <algorithm>

#include "sim/sim_port.hpp"

namespace lockstep::sim {

namespace {

bool must_stop(const SimulationOptions& simulation, uint64_t turn) {
  return turn % 1024 == 0 && simulation.stop_asked && simulation.stop_asked();
}

}  // namespace

Engine::Engine(const RunOptions& options, const SimulationOptions& simulation, Journal* journal)
    : options_(options),
      simulation_(simulation),
      journal_(journal),
      events_(simulation.tie_seed),
      flows_(simulation.communication->link_capacities()),
      board_(options.world_size) {
  world_.resize(static_cast<size_t>(options.world_size));
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    world_[static_cast<size_t>(rank)] = rank;
  }
  communicators_.emplace_back();
  const RankClasses* const classes = options_.classes.get();
  ranks.resize(classes == nullptr ? world_.size() : classes->size());
  constexpr size_t many_ranks = 64;  // fewer have their lists sooner than they would find them
  parts_.lists().share(ranks.size() >= many_ranks);
  for (uint32_t index = 0; index < ranks.size(); ++index) {
    if (must_stop(simulation, index)) {
      throw WorldGivenUp();
    }
    RankState& rank = ranks[index];
    const int32_t number = classes == nullptr ? world_[index] : classes->first(index);
    rank.place = place_of(options, number);
    rank.index = index;
    rank.stands_for = classes == nullptr ? 1 : static_cast<uint32_t>(classes->ranks_in(index));
    rank.buffers = std::make_unique<BufferTable>(options.numerics, options.device_memory,
                                                 options.value_budget);
    rank.groups.push_back({0, number, 0, rank.stands_for, false});
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

Engine::Kept Engine::kept() const {
  Kept kept{parts_.size(), waiters_.size(), 0, 0};
  for (const RankState& rank : ranks) {
    kept.buffers += rank.buffers->kept();
    for (const auto& lane : rank.lanes) {
      kept.tickets += lane->tickets.capacity();
    }
  }
  return kept;
}

void Engine::run(const ProgramOfRank& program) {
  begin_link_faults();
  for (RankState& rank : ranks) {
    start_lane(rank, program(rank.stack->rank()));
  }
  for (uint64_t handled = 1; !must_stop(simulation_, handled) && ranks_differ_.empty(); ++handled) {
    if (!events_.empty()) {
      handle(events_.pop());
    } else if (simulation_.any_source_last && match_held_receiver()) {
      drain();
    } else {
      break;
    }
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
    case EventKind::flow_start: start_transfer(index); break;
    case EventKind::flow_finish:
      if (flows_.finish(now_, index, generation, forecasts_)) {
        push_forecasts();
        const Transfer transfer = transfers_[transfer_of_flow_[index]];
        free_transfers_.push_back(transfer_of_flow_[index]);
        end_transfer(transfer, now_ + transfer.plan.latency);
      }
      break;
    case EventKind::any_source:
      if (simulation_.any_source_last) {
        held_receivers_.insert(index);
      } else {
        match_any_source(index);
      }
      break;
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

// Ready operations

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
  if (part.failed) {
    fail_part(index);
    return;
  }
  if (is_collective(part.op.kind)) {
    arrive(index);
  } else if (is_point_to_point(part.op.kind)) {
    message_ready(index);
  } else if (part.op.kind == OpKind::copy) {
    begin_transfer(part.ready, index, no_index, false);
  } else {
    launch_kernel(index);
  }
}

// What a kernel throws is reported to whoever settles its ticket, and to what comes after it: the
// host is elsewhere by now, or would be on a real device.
void Engine::note_broken(RankState& rank, SiteId site) {
  if (!rank.broken) {
    rank.broken = end_of(std::current_exception());
    if (rank.broken->site == no_site) {
      rank.broken->site = site;
    }
  }
}

void Engine::launch_kernel(uint32_t index) {
  Part& part = parts_[index];
  RankState& rank = ranks[part.rank];
  Time finish = part.ready;
  try {
    finish = finish_of_local(rank, part.op, part.ready);
    compute_values(rank, part.op);
  } catch (const std::exception&) {
    note_broken(rank, part.op.site);
    fail_part(index);
    return;
  }
  part_done(index, part.ready, finish);
}

void Engine::fail_part(uint32_t index) {
  const Part& part = parts_[index];
  RankState& rank = ranks[part.rank];
  const Ticket ticket = part.ticket;
  const Time issue = part.issue;
  const Time ready = part.ready;
  forget_part(index);
  fail(rank, ticket, issue, ready);
}

void Engine::fail(RankState& rank, Ticket ticket, Time issue, Time ready) {
  rank.lanes[ticket.lane.value]->tickets.told[ticket.sequence] = {Outcome::failed, {}, {}};
  if (journal_ != nullptr && journal_->options().completions) {
    journal_->lane(static_cast<int32_t>(rank.place.rank.value), ticket.lane)
        .complete(ticket.sequence, {issue, ready, ready, Outcome::failed, {}});
  }
  close_part(rank, ticket, ready);
}

void Engine::part_done(uint32_t index, Time start, Time finish) {
  const Part& part = parts_[index];
  RankState& rank = ranks[part.rank];
  const Ticket ticket = part.ticket;
  tell(rank, ticket, part.issue, start, finish);
  forget_part(index);
  close_part(rank, ticket, finish);
}

void Engine::forget_part(uint32_t index) {
  const Part& part = parts_[index];
  if (part.lists) {
    BufferTable& buffers = *ranks[part.rank].buffers;
    buffers.let_go(part.lists->views().reads);
    buffers.let_go(part.lists->views().writes);
  }
  parts_.give_back(index);
}

// Promises

Ticket Engine::promise(RankState& rank) {
  LaneState& lane = *rank.running;
  const Ticket promise = lane.tickets.open(lane.lane.id(), 1);
  rank.open_promises.push_back(promise);
  return promise;
}

void Engine::fulfil(RankState& rank, Ticket promise) {
  std::erase(rank.open_promises, promise);
  tell(rank, promise, rank.running->host, rank.running->host, rank.running->host);
  TicketState& state = rank.lanes[promise.lane.value]->tickets.state(promise.sequence);
  state.finish = rank.running->host;
  state.open_parts = 0;
  resolve(state, false);
  drain();
}

}  // namespace lockstep::sim
