// A lane runs its sub-programs by a flat loop: the stack is as deep after a million as after one.
#include <catch2/catch.hpp>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;

namespace sub_programs_test {

namespace {

constexpr int64_t million = 1'000'000;

Task<int64_t> one() { co_return 1; }
Program nothing() { co_return; }

Program many_sub_programs(int64_t* sum) {
  for (int64_t i = 0; i < million; ++i) {
    co_await nothing();
    *sum += co_await one();
  }
}

Task<int64_t> depth_first(int64_t depth) {
  if (depth == 0) {
    co_return 0;
  }
  const int64_t below = co_await depth_first(depth - 1);
  co_return below + 1;
}

Program nested_sub_programs(int64_t* sum) { *sum = co_await depth_first(million / 10); }

Program of_rank(Rank& rank, int64_t* flat, int64_t* nested) {
  co_await many_sub_programs(flat);
  co_await nested_sub_programs(nested);
  const Ticket end = rank.barrier(world_group);
  co_await rank.settle(end);
}

}  // namespace

TEST_CASE("a million sub-programs that end at once, and a nest of many, need no deeper stack") {
  RunOptions options;
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(1, BytesPerSecond(1), Time(1));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  int64_t flat = 0;
  int64_t nested = 0;
  const RunResult result =
      sim::simulate(options, simulation, [&](Rank& rank) { return of_rank(rank, &flat, &nested); });
  CHECK(result.ends[0].kind == RankEnd::Kind::finished);
  CHECK(flat == million);
  CHECK(nested == million / 10);
}

}  // namespace sub_programs_test
