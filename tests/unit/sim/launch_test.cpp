// How far a simulated host runs ahead of its device, and what it hears of a kernel that breaks.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace launch_test {

namespace {

class BreaksAtTag7 final : public sim::ComputeCost {
 public:
  Time duration(const Op& op, RankId rank, Time start) const override {
    if (op.tag == 7) {
      throw std::runtime_error("the kernel broke");
    }
    return explicit_.duration(op, rank, start);
  }

 private:
  sim::ExplicitComputeCost explicit_;
};

RunResult run(const ProgramOfRank& program, int32_t launch_queue = 1024) {
  RunOptions options;
  options.world_size = 2;
  options.launch_queue = launch_queue;
  const BreaksAtTag7 compute;
  sim::FlatNetworkCost network(2, 50_GBps, 500_ns);
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  return sim::simulate(options, simulation, program);
}

// Rank 1 comes 100 ms late; what rank 0 computes stands behind two barriers in the launch queue.
Program late_peer(Rank& rank) {
  if (rank.id() == 1) {
    rank.host(100_ms);
  }
  rank.barrier(world_group);
  rank.barrier(world_group);
  const Ticket computed = rank.compute(1_ms);
  co_await rank.settle(computed);
}

Program short_after_long(Rank& rank) {
  rank.compute(50_ms, {.on = communication_stream});
  for (int i = 0; i < 3; ++i) {
    rank.compute(1_ms);
  }
  const Ticket last = rank.compute(1_ms);
  co_await rank.settle(last);
}

Program hangs_after_full_queue(Rank& rank) {
  for (int i = 0; i < 3; ++i) {
    rank.barrier(world_group);
  }
  if (rank.id() == 0) {
    const Ticket alone = rank.barrier(world_group);
    co_await rank.settle(alone);
  }
}

Program never_received(Rank& rank) {
  for (int i = 0; i < 3; ++i) {
    rank.receive(world_group, Slice::of_size(4_B), 1 - rank.id());
  }
  co_return;
}

// What stands first in rank 0's launch queue ends after what stands second, on another stream.
Program second_before_first(Rank& rank) {
  const Slice message = Slice::of_size(4_B);
  if (rank.id() == 1) {
    rank.host(10_ms);
    const Ticket sent = rank.send(world_group, message, 0);
    co_await rank.settle(sent);
    rank.host(100_ms);
    const Ticket together = rank.barrier(world_group);
    co_await rank.settle(together);
    co_return;
  }
  rank.barrier(world_group);
  const Ticket received = rank.receive(world_group, message, 1, 0, {.on = copy_stream});
  rank.compute(1_ms);
  const Ticket computed = rank.compute(1_ms);
  co_await rank.settle(received);
  co_await rank.settle(computed);
}

Program breaks_late(Rank& rank) {
  const Ticket together = rank.barrier(world_group);
  KernelCall call;
  call.layer = 7;
  call.work = 1;
  const Ticket broken = rank.compute(call, {.after = {together}});
  const Ticket next = rank.compute(1_ms, {.after = {broken}});
  co_await rank.settle(rank.id() == 0 ? next : together);
}

Time start_of(const RunResult& result, uint32_t sequence) {
  return result.journal->lane(0, 0).completion(sequence).start;
}

}  // namespace

TEST_CASE("a full launch queue holds the host until a peer makes room") {
  CHECK(start_of(run(late_peer, 3), 3) == Time{});
  // The first barrier ends 2 x 500 ns or so after rank 1 has come.
  CHECK(start_of(run(late_peer, 2), 3) >= 100_ms);
  CHECK_FALSE(run(late_peer, 1).hung);
}

TEST_CASE("the launch queue counts what has not finished, in whatever order it finishes") {
  // Computes of 1 ms on one stream beside one of 50 ms: with room for two, each is submitted when
  // the one before it has finished, not when the long one has.
  const RunResult result = run(short_after_long, 2);
  CHECK(result.journal->lane(0, 0).completion(5).issue == 3_ms);
  CHECK(result.total_time == 50_ms);
}

TEST_CASE("a host held by a launch that ends after a later one goes on when that ends") {
  const RunResult result = run(second_before_first, 2);
  CHECK_FALSE(result.hung);
  CHECK(start_of(result, 3) >= 110_ms);  // no room before the barrier has ended
}

TEST_CASE("a lane that waits forever for room in the launch queue is found hanging there") {
  const RunResult result = run(never_received, 1);
  CHECK(result.hung);
  REQUIRE(result.waiting.size() == 2);
  CHECK(result.waiting[0].tickets == std::vector<Ticket>{{1, LaneId{0}}});
  CHECK(result.ends[0].kind == RankEnd::Kind::stuck);
  CHECK(result.journal->lane(0, 0).size() == 1);  // the second was never submitted
  CHECK_FALSE(run(never_received, 1024).hung);
}

TEST_CASE("a hang behind a full launch queue that emptied again stands where it is") {
  const RunResult result = run(hangs_after_full_queue, 2);
  REQUIRE(result.waiting.size() == 1);
  CHECK(result.waiting[0].rank == 0);
  // The wait for the call that rank 1 never makes is the last row, and is still there.
  const LaneJournal& rows = result.journal->lane(0, 0);
  const Row last = rows.row(rows.size() - 1);
  CHECK(last.row == RowKind::settle);
  REQUIRE(result.waiting[0].tickets.size() == 1);
  CHECK(last.sequence == result.waiting[0].tickets[0].sequence);
}

TEST_CASE("a kernel that breaks after its submission fails its rank, not the simulation") {
  const RunResult result = run(breaks_late);
  for (const RankEnd& end : result.ends) {
    CHECK(end.kind == RankEnd::Kind::raised);
    CHECK(end.message == "the kernel broke");
  }
  const LaneJournal& rows = result.journal->lane(0, 0);
  CHECK(rows.completion(1).outcome == Outcome::ok);
  CHECK(rows.completion(2).outcome == Outcome::failed);
  CHECK(rows.completion(3).outcome == Outcome::failed);  // it came after the broken one
}

// 10 ms of kernels beside an all_reduce that takes 4 ms, and one that follows both.
Program beside_kernels(Rank& rank) {
  for (int i = 0; i < 10; ++i) {
    rank.compute(1_ms);
  }
  const Slice bytes = Slice::of_size(DType::fp32, 50'000'000);
  const Ticket reduced =
      rank.all_reduce(world_group, bytes, Reduction::sum, {.on = communication_stream});
  const Ticket last = rank.compute(1_ms, {.after = {reduced}});
  co_await rank.settle(last);
}

TEST_CASE("kernels lose a part of the time in which their rank communicates beside them") {
  const auto time_of = [](double contention) {
    RunOptions options;
    options.world_size = 2;
    const sim::ExplicitComputeCost compute;
    sim::FlatNetworkCost network(2, 50_GBps, 0_ns);
    sim::SimulationOptions simulation;
    simulation.compute = &compute;
    simulation.communication = &network;
    simulation.contention = contention;
    return sim::simulate(options, simulation, beside_kernels).total_time;
  };
  CHECK(time_of(0) == 11_ms);
  CHECK(time_of(0.25) == 12_ms);
  CHECK(time_of(0.5) == 13_ms);
}

}  // namespace launch_test
