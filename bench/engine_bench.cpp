// How fast the simulated world is, on workloads whose simulated time is known by hand: every run is
// compared with its formula, and a wrong time is an error of the benchmark.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/peak_memory.hpp"
#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace {

constexpr int layers = 16;
constexpr Bytes layer_gradient = 64_MiB;
constexpr BytesPerSecond bandwidth = 50_GBps;
constexpr Time latency = 500_ns;

/// Which decorators are between the programs and the world.
enum class Wrapping : uint8_t { none, journal, three };

using Network = std::unique_ptr<sim::CommunicationCost>;

Network flat_network(const RunOptions& options) {
  return std::make_unique<sim::FlatNetworkCost>(options.world_size, bandwidth, latency);
}

/// Rings over nodes of a DGX A100.
Network dgx_network(const RunOptions& options) {
  Cluster cluster = *cluster_preset("dgx-a100");
  cluster.nodes = options.world_size / cluster.node.devices;
  sim::CostOptions costs;
  costs.world_size = options.world_size;
  costs.algorithms = sim::CollectiveAlgorithms::ring;
  return std::move(sim::build_costs(cluster, costs).costs.communication);
}

RunResult run(const RunOptions& options, const Network& network, const ProgramOfRank& program) {
  const sim::ExplicitComputeCost compute;
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = network.get();
  return sim::simulate(options, simulation, program);
}

void run_repeatedly(benchmark::State& state, const RunOptions& options,
                    const ProgramOfRank& program, double expected_ms,
                    Network (*make_network)(const RunOptions&) = flat_network) {
  PeakMemory::restart();
  int64_t operations = 0;
  for (auto iteration : state) {
    const RunResult result = run(options, make_network(options), program);
    operations += result.operations;
    const double simulated_ms = seconds(result.total_time) * 1e3;
    state.counters["simulated_ms"] = simulated_ms;
    if (result.hung || std::abs(simulated_ms / expected_ms - 1) > 1e-6) {
      state.SkipWithError("the simulated time is not that of the formula");
      break;
    }
  }
  state.SetItemsProcessed(operations);
  state.counters["peak_MiB"] = PeakMemory::mebibytes();
}

double ring_all_reduce_ms(double ranks) {
  const double bytes = static_cast<double>(layer_gradient.count());
  return 2 * (ranks - 1) * seconds(latency) * 1e3 +
         2 * (ranks - 1) / ranks * bytes / static_cast<double>(bandwidth.count()) * 1e3;
}

// One data-parallel iteration: each layer's gradients travel while earlier layers go backward.
Program data_parallel_iteration(Rank& rank) {
  Ticket done;
  for (int layer = 0; layer < layers; ++layer) {
    done = rank.compute(1_ms);
  }
  std::vector<Ticket> reduced;
  for (int layer = 0; layer < layers; ++layer) {
    done = rank.compute(2_ms);
    reduced.push_back(rank.all_reduce(world_group, Slice::of_size(layer_gradient), Reduction::sum,
                                      {.after = {done}}));
  }
  co_await rank.settle_all(reduced);
}

void iteration_16_layers(benchmark::State& state) {
  RunOptions options;
  options.world_size = static_cast<int32_t>(state.range(0));
  options.record = false;
  const double all_reduce_ms = ring_all_reduce_ms(static_cast<double>(state.range(0)));
  run_repeatedly(state, options, data_parallel_iteration, 18 + layers * all_reduce_ms);
}

void iteration_on_dgx_a100(benchmark::State& state) {
  RunOptions options;
  options.world_size = static_cast<int32_t>(state.range(0));
  options.record = false;
  // Eight channels over eight NICs of 25 GB/s; a round has 7 hops of 700 ns and one of 2500 ns a
  // node, an all_reduce two rounds less two hops.
  const auto ranks = static_cast<double>(options.world_size);
  const double all_reduce_ms =
      2 * (ranks - 1) / ranks * static_cast<double>(layer_gradient.count()) / 200e6 +
      (2 * ranks / 8 * (7 * 700 + 2500) - 2 * 700) * 1e-6;
  run_repeatedly(state, options, data_parallel_iteration,
                 18 + (layers - 1) * std::max(2.0, all_reduce_ms) + all_reduce_ms, dgx_network);
}

// The same all-reduces spelled out: 2(N-1) steps, each a grouped send and receive of one chunk.
Program spelled_ring(Rank& rank) {
  const int32_t size = rank.world_size();
  const int32_t next = (rank.id() + 1) % size;
  const int32_t previous = (rank.id() + size - 1) % size;
  const Slice chunk = Slice::of_size(layer_gradient / size);
  for (int step = 0; step < layers * 2 * (size - 1); ++step) {
    GroupedCall exchange(rank);
    exchange.send(world_group, chunk, next).receive(world_group, chunk, previous);
    const Ticket exchanged = exchange.submit();
    co_await rank.settle(exchanged);
  }
}

void ring_of_messages(benchmark::State& state) {
  RunOptions options;
  options.world_size = static_cast<int32_t>(state.range(0));
  options.record = false;
  run_repeatedly(state, options, spelled_ring,
                 layers * ring_all_reduce_ms(static_cast<double>(state.range(0))));
}

// Three computes to one all_reduce, 100 iterations of 16 layers; communication is the bottleneck.
Program three_computes_to_one(Rank& rank) {
  std::vector<Ticket> reduced;
  for (int iteration = 0; iteration < 100; ++iteration) {
    reduced.clear();
    for (int layer = 0; layer < layers; ++layer) {
      rank.compute(10_us);
      rank.compute(10_us);
      const Ticket done = rank.compute(10_us);
      reduced.push_back(rank.all_reduce(world_group, Slice::of_size(layer_gradient), Reduction::sum,
                                        {.after = {done}}));
    }
    co_await rank.settle_all(reduced);
  }
}

void operations_per_second(benchmark::State& state, Wrapping wrapping) {
  RunOptions options;
  options.world_size = 512;
  options.record = wrapping == Wrapping::journal;
  const Journal nothing_recorded(options.world_size, {});
  if (wrapping == Wrapping::three) {
    options.check = true;
    options.replay = &nothing_recorded;
    for (int32_t rank = 0; rank < options.world_size; ++rank) {
      options.faults[rank] = {};
    }
  }
  const double iteration_ms = 0.03 + layers * ring_all_reduce_ms(512);
  run_repeatedly(state, options, three_computes_to_one, 100 * iteration_ms);
}

Program two_streams(Rank& rank, int64_t operations) {
  Ticket sent;
  for (int64_t pair = 0; pair < operations / 2; ++pair) {
    const Ticket computed = rank.compute(1_us);
    sent = rank.compute(1_us, {.on = communication_stream, .after = {computed}});
  }
  co_await rank.settle(sent);
}

void one_rank_two_streams(benchmark::State& state) {
  RunOptions options;
  options.record = false;
  const int64_t operations = state.range(0);
  run_repeatedly(
      state, options, [operations](Rank& rank) { return two_streams(rank, operations); },
      static_cast<double>(operations / 2 + 1) * 1e-3);
}

}  // namespace

BENCHMARK(iteration_16_layers)
    ->Arg(8)
    ->Arg(64)
    ->Arg(512)
    ->Arg(4096)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(iteration_on_dgx_a100)->Arg(64)->Arg(512)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_of_messages)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(operations_per_second, bare, Wrapping::none)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(operations_per_second, journal, Wrapping::journal)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(operations_per_second, three_decorators, Wrapping::three)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(one_rank_two_streams)
    ->RangeMultiplier(10)
    ->Range(1'000, 100'000'000)
    ->Unit(benchmark::kMillisecond);
