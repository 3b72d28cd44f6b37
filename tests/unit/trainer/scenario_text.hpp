#pragma once

#include <stdexcept>
#include <string>

#include "io/scenario/load/load.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

namespace lockstep::test {

/// The only case of a scenario that is written out in a test.
inline Scenario scenario_of(const std::string& text) {
  const FileReader reader = [&](const std::string&,
                                size_t) -> std::variant<std::string, FileError> { return text; };
  LoadedScenarios loaded = load_scenario_file("scenario.yaml", {}, reader);
  if (!loaded.ok()) {
    throw std::invalid_argument(loaded.diagnostics.front().message);
  }
  return loaded.scenarios.front();
}

/// Runs a preparation on a flat network: 1 GB/s per link, 1 us per step.
inline RunResult simulate(const Preparation& preparation) {
  if (!preparation.runnable()) {
    throw std::invalid_argument(
        preparation.problems.empty() ? "no program" : preparation.problems.front().message);
  }
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(preparation.options.world_size, BytesPerSecond(1'000'000'000),
                               Time(1'000'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  return sim::simulate(preparation.options, simulation, preparation.program);
}

struct Ran {
  Preparation preparation;
  RunResult result;
  const RankLog& log(size_t rank) const { return preparation.log->ranks[rank]; }
};

inline Ran run_text(const std::string& text, const StrategyRegistry& registry = {}) {
  Ran ran;
  ran.preparation = prepare(scenario_of(text), registry);
  ran.result = simulate(ran.preparation);
  return ran;
}

/// Operations of one kind in the journal of one rank.
inline int64_t count(const RunResult& result, int32_t rank, OpKind kind) {
  int64_t found = 0;
  result.journal->lane(rank, 0).for_each(
      [&](const Row& row) { found += row.row == RowKind::op && row.kind == kind ? 1 : 0; });
  return found;
}

}  // namespace lockstep::test
