// How memory and time rise with the number of training steps: journal off, DDP on two ranks.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/peak_memory.hpp"
#include "io/scenario/load/load.hpp"
#include "model/cluster/presets.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "sim/build_costs.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;

namespace {

Scenario two_ranks(int64_t steps) {
  LoadOptions options;
  options.set = {"cluster.nodes=1", "trainer.num_nodes=1", "trainer.devices=2",
                 "trainer.max_steps=" + std::to_string(steps),
                 "data.train.samples=" + std::to_string(steps * 16)};
  return load_scenario_file(std::string(LOCKSTEP_SOURCE_DIR) + "/bench/ddp_nodes.yaml", options)
      .scenarios.at(0);
}

void ddp_steps(benchmark::State& state) {
  PeakMemory::restart();
  for (auto iteration : state) {
    Preparation prepared = prepare(two_ranks(state.range(0)), standard_strategies());
    sim::CostOptions two;
    two.world_size = 2;
    const sim::Costs costs = sim::build_costs(*cluster_preset("dgx-a100"), two).costs;
    prepared.options.record = false;
    sim::SimulationOptions simulation;
    simulation.compute = costs.compute.get();
    simulation.communication = costs.communication.get();
    simulation.launch_overhead = costs.launch_overhead;
    const RunResult result = sim::simulate(prepared.options, simulation, prepared.program);
    if (result.hung || prepared.log->ranks.front().steps != state.range(0)) {
      state.SkipWithError("the training did not take its steps");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["peak_MiB"] = PeakMemory::mebibytes();
}

}  // namespace

BENCHMARK(ddp_steps)
    ->RangeMultiplier(10)
    ->Range(1'000, 100'000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
