// Threads that go on forever while every program waits.
#include <catch2/catch.hpp>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace thread_watch_test {

namespace {

Program meet_again_and_again(Rank& rank) {
  for (;;) {
    co_await rank.settle(rank.barrier(world_group));
  }
}

Program wait_for_nothing(Rank& rank) {
  rank.start_lane(meet_again_and_again(rank));
  co_await rank.settle(rank.promise());
}

Program meet_often(Rank& rank, Ticket told, int64_t times) {
  for (int64_t time = 0; time < times; ++time) {
    co_await rank.settle(rank.barrier(world_group));
  }
  rank.fulfil(told);
}

Program work_for_long(Rank& rank) {
  const Ticket told = rank.promise();
  rank.start_lane(meet_often(rank, told, 200'000));
  co_await rank.settle(rank.compute(10_s));
  co_await rank.settle(told);
}

RunResult run(const sim::SimulationOptions& with, const ProgramOfRank& program) {
  RunOptions options;
  options.world_size = 2;
  options.record = false;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(2, 50_GBps, 500_ns);
  sim::SimulationOptions simulation = with;
  simulation.compute = &compute;
  simulation.communication = &network;
  return sim::simulate(options, simulation, program);
}

}  // namespace

TEST_CASE("a program that waits for nothing ends, though its thread goes on") {
  const RunResult result = run({}, wait_for_nothing);
  CHECK(result.hung);
}

// 200,000 barriers take a second or so of the ten that the program works.
TEST_CASE("a program that works for long is waited for, whatever its thread does meanwhile") {
  const RunResult result = run({}, work_for_long);
  CHECK_FALSE(result.hung);
  CHECK(result.total_time >= 10_s);
  CHECK(result.total_time < 11_s);
}

// A host that has submitted everything waits for as long as its device works.
Program submit_ahead(Rank& rank) {
  Ticket last{};
  for (int64_t time = 0; time < 150'000; ++time) {
    last = rank.barrier(world_group);
  }
  co_await rank.settle(last);
}

Program submit_ahead_beside_a_thread(Rank& rank) {
  const Ticket told = rank.promise();
  rank.start_lane(meet_often(rank, told, 200));
  co_await rank.settle(told);
  for (int64_t round = 0; round < 2; ++round) {
    Ticket last{};
    for (int64_t time = 0; time < 120'000; ++time) {
      last = rank.barrier(world_group);
    }
    co_await rank.settle(last);
  }
}

TEST_CASE("a program waits for what it has submitted, however much that is") {
  for (const ProgramOfRank& program :
       {ProgramOfRank(submit_ahead), ProgramOfRank(submit_ahead_beside_a_thread)}) {
    const RunResult result = run({}, program);
    CHECK_FALSE(result.hung);
  }
}

}  // namespace thread_watch_test
