#include "sim/simulation.hpp"

namespace lockstep::sim {

RunResult simulate(const RunOptions& options, const SimulationOptions& simulation,
                   const ProgramOfRank& program) {
  RunResult result;
  if (options.record) {
    result.journal = std::make_unique<Journal>(options.world_size, options.journal);
  }
  Engine engine(options, simulation, result.journal.get());
  engine.run(program);
  result.total_time = engine.latest();
  result.operations = engine.operations();
  for (const RankState& rank : engine.ranks) {
    RankEnd end = rank.end;
    for (const auto& lane : rank.lanes) {
      if (lane->lane.done() || end.kind == RankEnd::Kind::lost) {
        continue;
      }
      result.hung = true;
      result.waiting.push_back({static_cast<int32_t>(rank.place.rank.value), lane->lane.id(),
                                lane->until, lane->awaited});
      if (lane->lane.id().value == 0) {
        end.kind = RankEnd::Kind::stuck;
        end.message = "waits for ever";
      }
    }
    result.ends.push_back(std::move(end));
    result.memory.push_back(rank.buffers->memory());
    rank.stack->tell_struck(result);
  }
  for (const int32_t number : engine.struck_links()) {
    result.struck_faults.emplace(number, -1);
  }
  engine.unwind();
  return result;
}

}  // namespace lockstep::sim
