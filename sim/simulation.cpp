#include "sim/simulation.hpp"

#include <algorithm>
#include <span>

#include "sim/engine.hpp"

namespace lockstep::sim {

namespace {

// UpdateSensitivity::largest_gradient says why. Ranks that share the update among them see only
// the gradients of their own parts.
void share_largest_gradient(std::span<UpdateSensitivities> of_ranks) {
  double largest = 0;
  for (const UpdateSensitivities& sensitivities : of_ranks) {
    for (const auto& [place, sensitivity] : sensitivities) {
      largest = std::max(largest, sensitivity.largest_gradient);
    }
  }
  for (UpdateSensitivities& sensitivities : of_ranks) {
    for (auto& [place, sensitivity] : sensitivities) {
      sensitivity.largest_gradient = largest;
    }
  }
}

// Adds the lanes of the rank that wait forever.
RankEnd end_of_rank(Engine& engine, const RankState& rank, RunResult& result) {
  const auto number = static_cast<int32_t>(rank.place.rank.value);
  RankEnd end = rank.end;
  const bool ended = end.kind == RankEnd::Kind::finished || end.kind == RankEnd::Kind::failed;
  if (rank.broken && ended) {
    end = *rank.broken;
  }
  for (const auto& lane : rank.lanes) {
    if (end.kind == RankEnd::Kind::lost || !engine.stuck(rank, *lane)) {
      continue;
    }
    if (rank.lost_at != Time::max()) {
      // It waits forever, so its end comes while it does.
      end = {RankEnd::Kind::lost, no_site, RankLost().what(), false};
      continue;
    }
    result.hung = true;
    if (!lane->holds.empty()) {
      const Hold& hold = lane->holds.front();
      result.waiting.push_back({number, lane->lane.id(), Until::all, {hold.until}});
      if (result.journal) {
        result.journal->lane(number, lane->lane.id()).truncate(hold.rows);
      }
    } else {
      result.waiting.push_back({number, lane->lane.id(), lane->until, lane->awaited});
    }
    if (lane->lane.id().value == 0) {
      // Also where its program has raised behind what holds its thread: it never comes to that.
      end = {RankEnd::Kind::stuck, no_site, "waits forever",
             end.out_of_memory && engine.ended_early()};
    }
  }
  return end;
}

/// Who waits with the rank that runs for them, in order of the ranks.
std::vector<WaitingLane> waiting_of_all(const std::vector<WaitingLane>& waiting,
                                        const RankClasses& classes) {
  std::vector<std::vector<const WaitingLane*>> of_class(classes.size());
  for (const WaitingLane& lane : waiting) {
    of_class[classes.of(static_cast<size_t>(lane.rank))].push_back(&lane);
  }
  std::vector<WaitingLane> all;
  for (size_t rank = 0; rank < classes.ranks(); ++rank) {
    for (const WaitingLane* const lane : of_class[classes.of(rank)]) {
      all.push_back(*lane);
      all.back().rank = static_cast<int32_t>(rank);
    }
  }
  return all;
}

void end_run(Engine& engine, RunResult& result) {
  for (const int32_t number : engine.struck_links()) {
    result.struck_faults.emplace(number, -1);
  }
  engine.unwind();
  if (result.journal) {
    if (result.ranks_differ.empty()) {
      result.journal->name_own_groups();
    }
  }
}

}  // namespace

RunResult simulate(const RunOptions& options, const SimulationOptions& simulation,
                   const ProgramOfRank& program) {
  RunResult result;
  if (options.record) {
    result.journal =
        std::make_unique<Journal>(options.world_size, options.journal, options.classes);
  }
  Engine engine(options, simulation, result.journal.get());
  engine.run(program);
  result.total_time = engine.latest();
  result.operations = engine.operations();
  result.simulated_operations = engine.simulated_operations();
  result.ranks_differ = engine.ranks_differ();
  result.sends_waited = options.eager_limit == Bytes{};
  const auto world = static_cast<size_t>(options.world_size);
  result.ends = ByRank<RankEnd>(world, options.classes);
  result.memory = ByRank<std::map<DeviceId, DeviceMemory>>(world, options.classes);
  result.sensitivities = ByRank<UpdateSensitivities>(world, options.classes);
  for (RankState& rank : engine.ranks) {
    const auto at = static_cast<size_t>(rank.place.rank.value);
    result.ends[at] = end_of_rank(engine, rank, result);
    result.memory[at] = rank.buffers->memory();
    result.sensitivities[at] = std::move(rank.sensitivities);
    rank.stack->tell_struck(result);
  }
  if (options.classes) {
    result.waiting = waiting_of_all(result.waiting, *options.classes);
  }
  share_largest_gradient(result.sensitivities.distinct());
  end_run(engine, result);
  return result;
}

}  // namespace lockstep::sim
