// FSDP1 over the simulator: what it sends, what it holds, and that it trains as ddp does.
#include <catch2/catch.hpp>

#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Sharding = FullyShardedOptions::Sharding;

TrainingPlan plan_for(const Network& network, bool numerics) {
  TrainingPlan plan;
  plan.network = &network;
  plan.optimizers = {{.lr = 0.5}};
  plan.numerics = numerics;
  plan.integer_values = true;
  return plan;
}

/// 4 - 8 - 8 - 2, whose middle is a block.
Network with_block() {
  LayerDescription block{.kind = "Sequential", .layers = {linear(8, 8), {.kind = "ReLU"}}};
  NetworkDescription description;
  description.name = "blocks";
  description.input = {4};
  description.layers = {linear(4, 8), block, block, linear(8, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

Batch two_samples(int32_t rank, int64_t step) {
  const int64_t first = 8 * step + 2 * rank;
  return {{first, first + 1}};
}

MakeStrategy fsdp(const FullyShardedOptions& options) {
  return [options](const TrainingPlan& plan) {
    return std::make_unique<FullyShardedDataParallel>(plan, options);
  };
}

MakeStrategy ddp() {
  return [](const TrainingPlan& plan) {
    return std::make_unique<DistributedDataParallel>(plan, DataParallelOptions());
  };
}

/// Parameters put together from what the ranks hold, in definition order.
std::vector<std::vector<double>> whole_parameters(const Trained& trained, const Network& network) {
  std::vector<std::vector<double>> whole;
  for (const ParameterPlace place : network.parameters()) {
    whole.emplace_back(static_cast<size_t>(network.parameter(place).elements()), -1000.0);
  }
  for (size_t rank = 0; rank < trained.strategies.size(); ++rank) {
    const std::vector<HeldParameter> held = trained.strategies[rank]->held_parameters();
    REQUIRE(held.size() == trained.parameters[rank].size());
    for (size_t i = 0; i < held.size(); ++i) {
      const Values& values = trained.parameters[rank][i];
      for (int64_t element = 0; element < values.size(); ++element) {
        whole[held[i].parameter].at(static_cast<size_t>(held[i].first_element + element)) =
            values.number(element);
      }
    }
  }
  return whole;
}

FullyShardedOptions wrapping_blocks(Sharding sharding) {
  FullyShardedOptions options;
  options.sharding = sharding;
  options.wrap.classes = {"Sequential"};
  return options;
}

}  // namespace

TEST_CASE("fsdp trains to the weights of ddp bit for bit where nothing is rounded") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, true);
  const Trained expected = train_simulated(plan, 4, ddp(), two_samples, 2);
  for (const Sharding sharding : {Sharding::full, Sharding::grad_op, Sharding::none,
                                  Sharding::hybrid, Sharding::hybrid_grad_op}) {
    for (const bool wraps : {true, false}) {
      FullyShardedOptions options = wrapping_blocks(sharding);
      options.wrap.classes.resize(wraps ? 1 : 0);
      const Trained trained = train_simulated(plan, 4, fsdp(options), two_samples, 2);
      INFO("sharding " << static_cast<int>(sharding) << " wraps " << wraps);
      CHECK(whole_parameters(trained, network) == whole_parameters(expected, network));
    }
  }
}

// The root (4-8 and 8-2: 40 + 18 elements) stays from forward to backward; each block (72) is
// gathered for forward and for backward. Flat parameters: tensors at multiples of 4 elements.
TEST_CASE("FULL_SHARD gathers blocks for forward and for backward and reduces every unit once") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, false);
  const Trained trained =
      train_simulated(plan, 4, fsdp(wrapping_blocks(Sharding::full)), two_samples, 1);
  const std::vector<Row> gathers =
      rows_at(trained.result, 0, fsdp_sites::gather_unit, OpKind::all_gather);
  const std::vector<Row> reductions =
      rows_at(trained.result, 0, fsdp_sites::reduce_unit, OpKind::reduce_scatter);
  CHECK(gathers.size() == 1 + 2 * 2);
  CHECK(reductions.size() == 3);
}

// What comes first in a residual, and so last in its backward, has no parameters.
TEST_CASE("a unit is not gathered again for layers without parameters") {
  NetworkDescription description;
  description.name = "residuals";
  description.input = {4};
  const LayerDescription residual{.kind = "Residual", .layers = {{.kind = "ReLU"}, linear(4, 4)}};
  description.layers = {linear(4, 4), residual, residual};
  description.loss = {.kind = "MSELoss"};
  const Network network = build_network(description).network;
  FullyShardedOptions options;
  options.wrap.repeated_blocks = true;
  const Trained trained =
      train_simulated(plan_for(network, true), 4, fsdp(options), two_samples, 1);
  CHECK(rows_at(trained.result, 0, fsdp_sites::gather_unit, OpKind::all_gather).size() ==
        1 + 2 * 2);
}

TEST_CASE("SHARD_GRAD_OP gathers every unit once and NO_SHARD none") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, false);
  const Trained once =
      train_simulated(plan, 4, fsdp(wrapping_blocks(Sharding::grad_op)), two_samples, 1);
  CHECK(rows_at(once.result, 0, fsdp_sites::gather_unit, OpKind::all_gather).size() == 3);
  const Trained none =
      train_simulated(plan, 4, fsdp(wrapping_blocks(Sharding::none)), two_samples, 1);
  CHECK(rows_at(none.result, 0, fsdp_sites::gather_unit, OpKind::all_gather).empty());
  CHECK(rows_at(none.result, 0, fsdp_sites::reduce_replicas, OpKind::all_reduce).size() == 3);
}

// torch/distributed/algorithms/_comm_hooks/default_hooks.py: 8 = 4 * 2, 6 = 4 * 1.5.
TEST_CASE("gradients are divided before and after the sum as the framework divides them") {
  CHECK(GradientDivision::over(8).before == 4);
  CHECK(GradientDivision::over(8).after == 2);
  CHECK(GradientDivision::over(6).before == 4);
  CHECK(GradientDivision::over(6).after == 1.5);
  CHECK(GradientDivision::over(1).before == 1);
}
