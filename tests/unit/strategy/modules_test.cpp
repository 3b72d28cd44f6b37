// Several modules under one strategy: which of their parameters get gradients, and when.
#include <catch2/catch.hpp>

#include "model/network/modules.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace modules_test {

namespace {

constexpr size_t player = 0;
constexpr size_t judge = 1;

/// A player 4 - 2 in front of a judge 2 - 1.
Network two_players() {
  NetworkDescription first{.input = Shape{4}, .layers = {linear(4, 2)}};
  NetworkDescription second{.input = Shape{2}, .layers = {linear(2, 1)}};
  first.loss = second.loss = {.kind = "MSELoss"};
  first.output_is_input = second.input_has_gradient = true;
  return joined(
      {{"player", build_network(first).network}, {"judge", build_network(second).network}});
}

TrainingPlan plan_of(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.assign(2, OptimizerPlan());
  for (size_t i = 0; i < 2; ++i) {
    plan.optimizers[i].lr = 0.125;
    plan.optimizers[i].first_layer = network.modules[i].first_layer;
    plan.optimizers[i].end_layer = network.modules[i].end_layer;
  }
  return plan;
}

StepOptions step_of(std::vector<size_t> modules, std::optional<size_t> only) {
  StepOptions options;
  options.manual = true;
  options.modules = std::move(modules);
  options.only_optimizer = only;
  return options;
}

/// Has each parameter a gradient after the backward?
Program one_backward(Rank& rank, Strategy* strategy, StepOptions options,
                     std::vector<bool>* with_gradient) {
  co_await strategy->setup(rank, Stage::fit);
  const Batch batch{{0, 1}};
  co_await strategy->forward(rank, batch, options);
  co_await strategy->backward(rank, options);
  for (const Replica::Parameter& parameter : strategy->replica().parameters()) {
    with_gradient->push_back(parameter.tensor.gradient.buffer != no_buffer);
  }
  co_await strategy->teardown(rank);
}

struct Backward {
  std::vector<bool> with_gradient;
  RunResult result;
};

Backward after_backward(const StepOptions& options) {
  const Network network = two_players();
  const TrainingPlan plan = plan_of(network);
  DataParallelOptions looking;
  looking.find_unused_parameters = true;
  RunOptions run;
  run.world_size = 2;
  run.numerics = true;
  run.network = &network;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(2, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  std::vector<std::unique_ptr<DistributedDataParallel>> strategies;
  std::vector<std::vector<bool>> with_gradient(2);
  for (int rank = 0; rank < 2; ++rank) {
    strategies.push_back(std::make_unique<DistributedDataParallel>(plan, looking));
  }
  RunResult result = sim::simulate(run, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return one_backward(rank, strategies[index].get(), options, &with_gradient[index]);
  });
  CHECK(with_gradient[0] == with_gradient[1]);
  return {with_gradient[0], std::move(result)};
}

}  // namespace

TEST_CASE("a backward through both modules fills the gradients of the toggled optimizer alone") {
  using Filled = std::vector<bool>;  // weight and bias of the player, weight and bias of the judge
  CHECK(after_backward(step_of({player, judge}, player)).with_gradient ==
        Filled{true, true, false, false});
  CHECK(after_backward(step_of({player, judge}, judge)).with_gradient ==
        Filled{false, false, true, true});
  CHECK(after_backward(step_of({player, judge}, std::nullopt)).with_gradient ==
        Filled{true, true, true, true});
  CHECK(after_backward(step_of({judge}, std::nullopt)).with_gradient ==
        Filled{false, false, true, true});
}

TEST_CASE("every manual backward reduces the buckets of all modules") {
  const Backward backward = after_backward(step_of({judge}, judge));
  const auto reduced = rows_at(backward.result, 0, ddp_sites::reduce_bucket, OpKind::all_reduce);
  REQUIRE(reduced.size() == 1);
  CHECK(reduced[0].bytes == (4 * 2 + 2 + 2 + 1) * 4);
}

TEST_CASE("no backward goes below the toggled module") {
  const Backward backward = after_backward(step_of({player, judge}, judge));
  int below = 0;
  int above = 0;
  backward.result.journal->lane(0, 0).for_each([&](const Row& row) {
    const bool is_backward = row.row == RowKind::op && row.kind == OpKind::compute &&
                             row.kernel == Kernel::layer_backward;
    below += is_backward && row.tag == 0;
    above += is_backward && row.tag == 1;
  });
  CHECK(below == 0);
  CHECK(above == 1);
}

TEST_CASE("one module run into another trains as one network of their layers does") {
  const Network chained = two_players();
  NetworkDescription description{.input = Shape{4}, .layers = {linear(4, 2), linear(2, 1)}};
  description.loss = {.kind = "MSELoss"};
  const Network whole = build_network(description).network;
  const auto trained = [](const Network& network, int64_t steps, const Asked& asked) {
    TrainingPlan plan;
    plan.network = &network;
    plan.numerics = true;
    plan.integer_values = true;
    plan.optimizers.front().lr = 0.125;
    const MakeStrategy make = [](const TrainingPlan& of) {
      return std::make_unique<DistributedDataParallel>(of, DataParallelOptions());
    };
    const Shard shard = [](int32_t rank, int64_t step) {
      return Batch{{4 * step + rank, 4 * step + rank + 2}};
    };
    return train_simulated(plan, 2, make, shard, steps, 1, asked).parameters;
  };
  const Asked through_both = [](int32_t, int64_t) {
    return step_of({player, judge}, std::nullopt);
  };
  CHECK(trained(chained, 3, through_both) == trained(whole, 3, {}));
  CHECK(trained(whole, 3, {}) != trained(whole, 0, {}));
}

}  // namespace modules_test
