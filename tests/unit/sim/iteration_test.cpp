#include <catch2/catch.hpp>
#include <vector>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace iteration_test {

namespace {

// One data-parallel iteration: each layer's gradients travel while earlier layers go backward.
Program iteration(Rank& rank) {
  constexpr int layers = 16;
  Ticket done;
  for (int layer = 0; layer < layers; ++layer) {
    done = rank.compute(1_ms);
  }
  std::vector<Ticket> reduced;
  for (int layer = 0; layer < layers; ++layer) {
    done = rank.compute(2_ms);
    reduced.push_back(
        rank.all_reduce(world_group, Slice::of_size(64_MiB), Reduction::sum, {.after = {done}}));
  }
  co_await rank.settle_all(reduced);
}

RunResult simulate_iteration(int32_t ranks) {
  RunOptions options;
  options.world_size = ranks;
  options.record = false;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(ranks, 50_GBps, 500_ns);
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  return sim::simulate(options, simulation, iteration);
}

}  // namespace

TEST_CASE("a data-parallel iteration of 16 layers takes as long as the formula says") {
  // By hand: with fast links 16 ms + 2 ms + 16 all-reduces; an all-reduce is 2(N-1) steps of 500 ns
  // and 2(N-1)/N of 64 MiB at 50 GB/s; where it is shorter than a layer's backward (2 ms) the
  // backward pass is what counts.
  for (const int64_t ranks : {8, 64, 512}) {
    const double all_reduce_ms =
        2.0 * static_cast<double>(ranks - 1) * 0.0005 +
        2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * 67108864 / 50e6;
    const double expected_ms = 18 + 16 * all_reduce_ms;
    const RunResult result = simulate_iteration(static_cast<int32_t>(ranks));
    CHECK_FALSE(result.hung);
    CHECK(seconds(result.total_time) * 1e3 == Approx(expected_ms).epsilon(1e-6));
    CHECK(result.operations == ranks * 48);
  }
  CHECK(seconds(simulate_iteration(8).total_time) * 1e3 == Approx(55.693).margin(0.0005));
  CHECK(seconds(simulate_iteration(512).total_time) * 1e3 == Approx(69.042).margin(0.0005));
}

}  // namespace iteration_test
