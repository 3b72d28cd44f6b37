#include "model/program/color_rule.hpp"

#include <catch2/catch.hpp>

#include <vector>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;

namespace color_rule_test {

namespace {

using Numbers = std::vector<double>;

/// What each rank gets as the sum over its block of two of the ranks' numbers, then over the first
/// ranks of the blocks.
Program sums_of(Rank& rank, Numbers& blocks, Numbers& firsts) {
  const Rank::NewGroup block = rank.split_group(world_group, ColorRule{2});
  const Rank::NewGroup first = rank.split_group(world_group, ColorRule{2, 0});
  const Ticket made[] = {block.ready, first.ready};
  co_await rank.settle_all(made);
  const Slice data = rank.allocate(Purpose::metric, DType::fp32, 1);
  const auto own = static_cast<size_t>(rank.id());
  rank.write(data, Values::of(DType::fp32, {static_cast<double>(1 << rank.id())}));
  const Ticket of_block = rank.all_reduce(block.group, data, Reduction::sum);
  co_await rank.settle(of_block);
  blocks[own] = rank.read(data).number(0);
  if (rank.id() % 2 == 0) {
    const Ticket of_firsts = rank.all_reduce(first.group, data, Reduction::sum);
    co_await rank.settle(of_firsts);
  }
  firsts[own] = rank.read(data).number(0);
  rank.release(data);
}

}  // namespace

TEST_CASE("a rule says the colour of every rank") {
  CHECK(ColorRule{4}.of(11) == 2);
  CHECK(ColorRule{4, 3}.of(11) == 0);
  CHECK(ColorRule{4, 3}.of(10) == no_color);
}

TEST_CASE("groups by a rule have the ranks that it names") {
  RunOptions options;
  options.world_size = 5;  // the last block has one rank
  options.numerics = true;
  Numbers blocks(5);
  Numbers firsts(5);
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(5, BytesPerSecond(1'000'000'000), Time(1));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  const RunResult result =
      sim::simulate(options, simulation, [&](Rank& rank) { return sums_of(rank, blocks, firsts); });
  CHECK_FALSE(result.hung);
  CHECK(blocks == Numbers{3, 3, 12, 12, 16});
  CHECK(firsts == Numbers{31, 3, 31, 12, 31});
}

}  // namespace color_rule_test
