// What the simulated world keeps of long runs, and what its ranks share.
#include <catch2/catch.hpp>
#include <vector>

#include "sim/engine.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace long_run_test {

namespace {

/// What a run needs beside its program; outlives it.
struct World {
  explicit World(int32_t ranks, bool record = false) : network(ranks, 50_GBps, 500_ns) {
    options.world_size = ranks;
    options.record = record;
    simulation.compute = &compute;
    simulation.communication = &network;
  }
  RunOptions options;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network;
  sim::SimulationOptions simulation;
};

// As data-parallel training does it: gradients come and go, and the exchange of the last step is
// still in flight when the next one begins, so that some operation always is.
Program overlapping_steps(Rank& rank, int steps) {
  Ticket exchanged;
  for (int step = 0; step < steps; ++step) {
    const Slice gradient = rank.allocate(Purpose::metric, DType::fp32, 8);
    KernelCall backward;
    const double value = step;
    backward.kernel = Kernel::fill;
    backward.writes = {&gradient, 1};
    backward.scalars = {&value, 1};
    const Ticket done = rank.compute(backward);
    const Ticket reduced =
        rank.all_reduce(world_group, gradient, Reduction::sum, {.after = {done}});
    rank.release(gradient);
    co_await rank.settle(exchanged ? exchanged : reduced);
    exchanged = reduced;
  }
  co_await rank.settle(exchanged);
}

Program idle(Rank& rank, Ticket never) { co_await rank.settle(never); }

Program two_lanes(Rank& rank, int steps) {
  const Ticket end = rank.promise();
  rank.start_lane(idle(rank, end));
  co_await overlapping_steps(rank, steps);
  rank.fulfil(end);
}

// Waits again and again for one of two, of which one never comes until the end.
Program polls(Rank& rank, int steps) {
  const Ticket end = rank.promise();
  for (int step = 0; step < steps; ++step) {
    const Ticket reduced = rank.barrier(world_group);
    std::vector<Ticket> either{end, reduced};
    co_await rank.settle_any(either);
  }
  rank.fulfil(end);
}

sim::Engine::Kept kept_after(Program (*program)(Rank&, int), int steps) {
  World world(2);
  sim::Engine engine(world.options, world.simulation, nullptr);
  engine.run([&](Rank& rank) { return program(rank, steps); });
  const sim::Engine::Kept kept = engine.kept();
  engine.unwind();
  return kept;
}

Program one_group_of_all(Rank& rank) {
  std::vector<int64_t> all;
  for (int32_t member = 0; member < rank.world_size(); ++member) {
    all.push_back(member);
  }
  const Rank::NewGroup listed = rank.new_group(world_group, all);
  const Rank::NewGroup split = rank.split_group(world_group, rank.id() % 2);
  co_await rank.settle(listed.ready);
  co_await rank.settle(split.ready);
}

}  // namespace

TEST_CASE("what is kept of a run does not grow with its steps") {
  for (auto* program : {overlapping_steps, two_lanes, polls}) {
    const sim::Engine::Kept few = kept_after(program, 20);
    const sim::Engine::Kept many = kept_after(program, 2'000);
    CHECK(many.parts == few.parts);
    CHECK(many.waiters == few.waiters);
    CHECK(many.buffers == 0);
  }
  // A promise that stays open keeps the tickets of its lane after it.
  CHECK(kept_after(overlapping_steps, 2'000) == kept_after(overlapping_steps, 20));
}

TEST_CASE("a released buffer is known as long as an operation in flight holds it") {
  BufferTable table(false, Bytes::max());
  const BufferId buffer = table.allocate({DType::fp32, Purpose::metric, DeviceId{0}, 4});
  const Slice slice{buffer, DType::fp32, 0, 4};
  table.hold({&slice, 1});
  table.hold({&slice, 1});
  table.release(buffer);
  CHECK(table.memory().at(DeviceId{0}).held == Bytes{});
  table.let_go({&slice, 1});
  CHECK(table.kept() == 1);
  CHECK(table.load(slice).size() == 4);
  table.let_go({&slice, 1});
  CHECK(table.kept() == 0);
}

TEST_CASE("ranks that make one group share one list of its members") {
  World world(6, true);
  const RunResult result = sim::simulate(world.options, world.simulation, one_group_of_all);
  REQUIRE_FALSE(result.hung);
  const auto& groups = result.journal->groups;
  for (size_t rank = 1; rank < groups.size(); ++rank) {
    CHECK(groups[rank][1].members.shares(groups[0][1].members));
    CHECK(groups[rank][2].members.shares(groups[rank % 2][2].members));
  }
  CHECK(groups[5][2].members.ranks() == std::vector<int32_t>{1, 3, 5});
  CHECK_FALSE(groups[0][2].members.shares(groups[1][2].members));
}

TEST_CASE("the checking board forgets a call that all ranks have posted") {
  FingerprintBoard board(2);
  for (int64_t call = 0; call < 100; ++call) {
    CHECK_FALSE(board.post(RankId{0}, world_group, call, {}));
    CHECK(board.open_calls(world_group) == 1);
    CHECK_FALSE(board.post(RankId{1}, world_group, call, {}));
    CHECK(board.open_calls(world_group) == 0);
  }
}

}  // namespace long_run_test
