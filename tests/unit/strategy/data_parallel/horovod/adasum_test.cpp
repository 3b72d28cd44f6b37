#include "model/strategy/data_parallel/horovod/adasum.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace adasum_test {

namespace {

using Numbers = std::vector<double>;

Program combine(Rank& rank, const Numbers* first, const Numbers* second, Values* result) {
  const auto elements = static_cast<int64_t>(first->size());
  const Slice a = rank.allocate(Purpose::metric, DType::fp32, elements);
  const Slice b = rank.allocate(Purpose::metric, DType::fp32, elements);
  const Slice sum = rank.allocate(Purpose::metric, DType::fp32, elements);
  rank.write(a, Values::of(DType::fp32, *first));
  rank.write(b, Values::of(DType::fp32, *second));
  const Ticket done = adasum_of(rank, {a}, {b}, {sum}, {compute_stream, {}, {}});
  co_await rank.settle(done);
  *result = rank.read(sum);
}

Numbers adasum(const Numbers& first, const Numbers& second) {
  RunOptions options;
  options.world_size = 1;
  options.numerics = true;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(1, BytesPerSecond(1'000'000'000), Time(1'000'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  Values result(DType::fp32, static_cast<int64_t>(first.size()));
  const RunResult run = sim::simulate(
      options, simulation, [&](Rank& rank) { return combine(rank, &first, &second, &result); });
  REQUIRE(run.ends[0].kind == RankEnd::Kind::finished);
  Numbers numbers;
  for (int64_t index = 0; index < result.size(); ++index) {
    numbers.push_back(result.number(index));
  }
  return numbers;
}

void check_near(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t index = 0; index < found.size(); ++index) {
    CHECK(found[index] == Approx(expected[index]).margin(1e-6));
  }
}

/// Four ranks; SGD at a rate of its own.
std::string training(const std::string& strategy, int nodes, int steps, const std::string& more) {
  return fmt::format(
      "version: 1\nversions: {{lightning: \"1.9.5\"}}\ncluster: {{preset: dgx-a100, nodes: {}}}\n"
      "launcher: {{horovodrun: {{np: 4, hosts: [{}]}}}}\n"
      "model: {{input: [3], layers: [{{Linear: [3, 2]}}], loss: MSELoss}}\n"
      "optimizer: {{SGD: {{lr: 0.0625}}}}\n"
      "data: {{train: {{samples: 64, batch_size: 2}}}}\n"
      "trainer: {{accelerator: gpu, devices: {}, strategy: {}, max_epochs: 1, limit_train_batches: "
      "{}, num_sanity_val_steps: 0, enable_checkpointing: false{}}}\n",
      nodes,
      nodes == 1   ? "4"
      : nodes == 2 ? "2, 2"
                   : "1, 1, 2",
      4 / nodes, strategy, steps, more);
}

Numbers parameters(const Ran& ran, size_t rank) {
  Numbers all;
  for (const Values& values : ran.log(rank).final_parameters) {
    for (int64_t index = 0; index < values.size(); ++index) {
      all.push_back(values.number(index));
    }
  }
  REQUIRE(all.size() == 8);
  return all;
}

Ran run(const std::string& text) { return run_text(text, standard_strategies()); }

}  // namespace

// By hand from (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b.
TEST_CASE("Adasum of two vectors") {
  check_near(adasum({1, 0}, {0, 1}), {1, 1});    // orthogonal: the sum
  check_near(adasum({1, 0}, {1, 0}), {1, 0});    // equal: one of them
  check_near(adasum({2, 0}, {1, 1}), {2, 0.5});  // 0.75 (2, 0) + 0.5 (1, 1)
  check_near(adasum({1, 0}, {-1, 0}), {0, 0});   // 1.5 of each
  check_near(adasum({0, 0}, {3, 4}), {3, 4});    // nothing changes what is added to it
  check_near(adasum({3, 4}, {0, 0}), {3, 4});
  check_near(adasum({2, 2}, {4, 4}), {3, 3});  // 0 (2, 2) + 0.75 (4, 4): a.b = 16, |a|^2 = 8
}

// In one node Adasum is the mean of the steps, which for SGD is the step of the mean gradient.
TEST_CASE("in one node Adasum of plain SGD is the average of gradients") {
  const Ran combined = run(training("{HorovodStrategy: {op: adasum}}", 1, 3, ""));
  const Ran averaged = run(training("horovod", 1, 3, ""));
  check_near(parameters(combined, 0), parameters(averaged, 0));
  CHECK(parameters(combined, 0) == parameters(combined, 3));
}

TEST_CASE("between nodes Adasum leaves the same parameters everywhere, and not those of the mean") {
  const Ran combined = run(training("{HorovodStrategy: {op: adasum}}", 2, 3, ""));
  const Ran averaged = run(training("horovod", 2, 3, ""));
  for (size_t rank = 1; rank < 4; ++rank) {
    CHECK(parameters(combined, 0) == parameters(combined, rank));
  }
  CHECK_FALSE(parameters(combined, 0)[0] == Approx(parameters(averaged, 0)[0]).margin(1e-6));
}

TEST_CASE("accumulating batches under Adasum raises as Horovod does") {
  const Ran ran =
      run(training("{HorovodStrategy: {op: adasum}}", 1, 4, ", accumulate_grad_batches: 2"));
  CHECK(ran.result.ends[0].message.find("more than backward_passes_per_step times") !=
        std::string::npos);
}

}  // namespace adasum_test
