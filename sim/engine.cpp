#include "sim/engine.hpp"

#include <algorithm>
#include <optional>

#include "sim/sim_port.hpp"

namespace lockstep::sim {

namespace {

std::vector<TimedFault> faults_of(const RunOptions& options, const SimulationOptions& simulation) {
  std::vector<TimedFault> faults = simulation.faults_of_costs;
  for (const LinkFault& fault : simulation.link_faults) {
    faults.push_back({TimedFault::any_rank, fault.at, fault.duration});
  }
  for (const auto& [rank, time] : simulation.lost_ranks) {
    faults.push_back({rank, {Instant::Kind::time, time, 0}, Time::max()});
  }
  for (const auto& [rank, planned] : options.faults) {
    for (const PlannedFault& fault : planned) {
      faults.push_back({rank, fault.at, fault.duration});
    }
  }
  return faults;
}

}  // namespace

Engine::Engine(const RunOptions& options, const SimulationOptions& simulation, Journal* journal)
    : options_(options),
      simulation_(simulation),
      journal_(journal),
      board_(options.world_size),
      launch_limit_(std::max(1, options.launch_queue), journal),
      agenda_(simulation.tie_seed, simulation.drawn_before),
      in_flight_(ranks, agenda_, journal, simulation.steps),
      communicators_(options.world_size),
      collectives_(options_, ranks, in_flight_, communicators_, journal, ranks_differ_),
      messages_(options_, simulation_, ranks, in_flight_, agenda_, ranks_differ_),
      links_(simulation.communication->link_capacities(), agenda_),
      link_faults_(simulation_.link_faults, *simulation.communication, links_, agenda_),
      transfers_({ranks, in_flight_, communicators_, *simulation.communication, links_,
                  link_faults_, agenda_, options.classes != nullptr && !simulation.memory_alone,
                  ranks_differ_}),
      fault_horizon_(faults_of(options_, simulation_)),
      periods_(options_,
               {ranks, agenda_, in_flight_, communicators_, messages_, transfers_, links_},
               fault_horizon_, journal) {
  const RankClasses* const classes = options_.classes.get();
  ranks.resize(classes == nullptr ? static_cast<size_t>(options.world_size) : classes->size());
  constexpr size_t many_ranks = 64;  // fewer have their lists sooner than they would find them
  in_flight_.share_lists(ranks.size() >= many_ranks);
  in_flight_.slow_kernels_by(simulation_.contention);
  for (uint32_t index = 0; index < ranks.size(); ++index) {
    if (must_stop(index)) {
      throw WorldGivenUp();
    }
    make_rank(index);
  }
  for (const auto& [rank, time] : simulation.lost_ranks) {
    const auto at = static_cast<size_t>(rank);
    Time& lost_at = ranks[classes == nullptr ? at : classes->of(at)].lost_at;
    lost_at = std::min(lost_at, time);
  }
}

void Engine::make_rank(uint32_t index) {
  const RankClasses* const classes = options_.classes.get();
  RankState& rank = ranks[index];
  const int32_t number = classes == nullptr ? static_cast<int32_t>(index) : classes->first(index);
  rank.place = place_of(options_, number);
  rank.index = index;
  rank.stands_for = classes == nullptr ? 1 : static_cast<uint32_t>(classes->ranks_in(index));
  rank.buffers = std::make_unique<BufferTable>(options_.numerics, options_.device_memory,
                                               options_.value_budget);
  rank.groups.push_back({0, number, 0, rank.stands_for, false});
  rank.port = std::make_unique<SimPort>(*this, rank);
  rank.stack =
      std::make_unique<RankStack>(*rank.port, options_, journal_, &board_, rank.port.get());
}

bool Engine::must_stop(uint64_t turn) const {
  return turn % 1024 == 0 && simulation_.stop_asked && simulation_.stop_asked();
}

Engine::~Engine() = default;

Engine::Kept Engine::kept() const {
  Kept kept{in_flight_.parts_known(), in_flight_.waiters_known(), 0, 0};
  for (const RankState& rank : ranks) {
    kept.buffers += rank.buffers->kept();
    for (const auto& lane : rank.lanes) {
      kept.tickets += lane->tickets.capacity();
    }
  }
  return kept;
}

// All ranks leave out the same periods, and go on after them.
Time Engine::latest() const { return agenda_.latest() + ranks.front().skipped; }

void Engine::run(const ProgramOfRank& program) {
  link_faults_.begin();
  for (RankState& rank : ranks) {
    start_lane(rank, program(rank.stack->rank()));
  }
  for (uint64_t handled = 1; !must_stop(handled) && ranks_differ_.empty() && !ends_; ++handled) {
    if (!agenda_.empty()) {
      handle(agenda_.pop());
      if (thread_watch_.is_endless(agenda_, ranks.size(), in_flight_.program_work_ended())) {
        break;
      }
      continue;
    }
    const std::optional<Transfer> held =
        simulation_.any_source_last ? messages_.match_held() : std::nullopt;
    if (!held) {
      break;
    }
    begin_transfer(*held);
    drain();
  }
  in_flight_.tell_unfinished();
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

void Engine::handle(const Agenda::Entry& event) {
  switch (event.kind) {
    case Agenda::Kind::lane: {
      LaneState& lane = lane_at(ranks, event.index);
      if (lane.waiting && event.is_of(lane.generation)) {
        resume(ranks[lane.rank_index], lane, event.time);
      }
      break;
    }
    case Agenda::Kind::flow_start:
      if (const auto ended = transfers_.start(event.index)) {
        end_transfer(ended->transfer, ended->finish);
      }
      break;
    case Agenda::Kind::flow_finish:
      if (const auto ended = transfers_.finish_flow(event.index, event.generation)) {
        end_transfer(ended->transfer, ended->finish);
      }
      break;
    case Agenda::Kind::any_source:
      for (const Transfer& message : messages_.match_any_source(event.index)) {
        begin_transfer(message);
      }
      break;
    case Agenda::Kind::link_slow: link_faults_.change(event.index, true); break;
    case Agenda::Kind::link_free: link_faults_.change(event.index, false); break;
  }
  drain();
}

void Engine::reached(RankState& rank, const Position& position) {
  if (rank.running == nullptr) {
    return;  // being unwound
  }
  const Time shown = rank.running->host + rank.skipped;
  fault_horizon_.reached(rank.place.rank, position, shown);
  if (simulation_.observer != nullptr) {
    simulation_.observer->reached(rank.place.rank, position, shown);
  }
  link_faults_.reached(position, rank.running->host);
}

PeriodsLeftOut Engine::begins_period(RankState& rank, const PeriodStart& start) {
  const bool may_leave_out = simulation_.leaves_out_periods && rank.running != nullptr &&
                             rank.running->lane.id().value == 0;
  if (!may_leave_out) {
    return {};
  }
  PeriodStart known = start;
  known.alike = agenda_.draws() ? 0 : start.alike;
  const Time skipped = rank.skipped;
  const PeriodsLeftOut left_out = periods_.begin(rank, known);
  const Time by = rank.skipped - skipped;
  if (by == Time{}) {
    return left_out;
  }
  const auto come_earlier = [by](RankState& of) {
    of.lost_at -= of.lost_at == Time::max() ? Time{} : by;
  };
  come_earlier(rank);
  if (rank.place.rank.value == 0) {
    for (RankState& other : ranks) {
      if (other.follower != nullptr) {
        come_earlier(other);
      }
    }
    link_faults_.come_earlier(by);
  }
  return left_out;
}

void Engine::follow_periods(RankState& rank, PeriodFollower* follower) {
  if (!simulation_.leaves_out_periods) {
    return;
  }
  rank.follower = follower;
  if (follower != nullptr) {
    periods_.add_follower(rank);
  }
}

// Ready operations

void Engine::drain() {
  while (in_flight_.has_ready()) {
    launch(in_flight_.take_ready());
  }
}

void Engine::launch(uint32_t index) {
  const Part& part = in_flight_[index];
  RankState& rank = ranks[part.rank];
  if (part.ready >= rank.lost_at) {
    rank.end = {RankEnd::Kind::lost, no_site, RankLost().what(), false};
    return;  // the rank is gone: the operation never starts
  }
  if (part.failed) {
    in_flight_.fail_part(index);
    return;
  }
  if (is_collective(part.op.kind)) {
    if (const auto content = collectives_.arrive(index)) {
      begin_transfer(*content);
    }
  } else if (is_point_to_point(part.op.kind)) {
    if (const auto message = messages_.ready(index)) {
      begin_transfer(*message);
    }
  } else if (part.op.kind == OpKind::copy) {
    begin_transfer({part.ready, index, no_index, false});
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
  Part& part = in_flight_[index];
  RankState& rank = ranks[part.rank];
  Time finish = part.ready;
  try {
    finish = finish_of_local(rank, part.op, part.ticket, part.ready);
    compute_values(rank, part.op);
  } catch (const std::exception&) {
    note_broken(rank, part.op.site);
    in_flight_.fail_part(index);
    return;
  }
  in_flight_.finish_part(index, part.ready, finish);
}

void Engine::begin_transfer(const Transfer& transfer) {
  if (const std::optional<Time> finish = transfers_.begin(transfer)) {
    end_transfer(transfer, *finish);
  }
}

void Engine::end_transfer(const Transfer& transfer, Time finish) {
  if (transfer.is_collective) {
    collectives_.complete(transfer, finish);
  } else if (transfer.second != no_index) {
    messages_.deliver(transfer, finish);
  } else {
    const Part& part = in_flight_[transfer.first];
    const OpLists& lists = part.op.list();
    if (!lists.reads.empty() && !lists.writes.empty()) {
      BufferTable& buffers = *ranks[part.rank].buffers;
      buffers.store(lists.writes[0], buffers.load(lists.reads[0]));
    }
    in_flight_.finish_part(transfer.first, transfer.start, finish);
  }
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
  in_flight_.tell(rank, promise, rank.running->host, rank.running->host, rank.running->host);
  TicketState& state = rank.lanes[promise.lane.value]->tickets.state(promise.sequence);
  state.finish = rank.running->host;
  state.open_parts = 0;
  in_flight_.resolve(state, false);
  drain();
}

}  // namespace lockstep::sim
