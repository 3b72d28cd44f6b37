// FSDP1 over the simulator: what it sends, what it holds, and that it trains as ddp does.
#include <catch2/catch.hpp>

#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace fsdp_test {

namespace {

using Sharding = FullyShardedOptions::Sharding;

MakeStrategy fsdp(const FullyShardedOptions& options) {
  return [options](const TrainingPlan& plan) {
    return std::make_unique<FullyShardedDataParallel>(plan, options);
  };
}

FullyShardedOptions wrapping_blocks(Sharding sharding) {
  FullyShardedOptions options;
  options.sharding = sharding;
  options.wrap.classes = {"Sequential"};
  return options;
}

Completion completion_of(const Trained& trained, const Row& row) {
  return trained.result.journal->lane(0, 0).completion(row.sequence);
}

Program read_whole(Rank& rank, Strategy* strategy, std::vector<std::vector<double>>* seen) {
  co_await strategy->setup(rank, Stage::fit);
  co_await strategy->begin_whole_parameters(rank);
  for (const Slice& value : strategy->replica().parameter_values()) {
    if (value.buffer == no_buffer) {
      continue;
    }
    std::vector<double>& numbers = seen->emplace_back();
    const Values values = rank.read(value);
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  }
  co_await strategy->end_whole_parameters(rank);
}

std::vector<std::vector<double>> drawn_parameters(Strategy& strategy, const Network& network) {
  std::vector<std::vector<double>> all;
  for (size_t index = 0; index < network.parameters().size(); ++index) {
    const Values values = strategy.replica().state().initial_value(index, 0);
    std::vector<double>& numbers = all.emplace_back();
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  }
  return all;
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

// Eight ranks shard in pairs by a mesh of [4, 2]: a block has 72 elements, the root 58, and halves
// of these are reduced across the four replicas.
TEST_CASE("a device mesh says over how many neighbours HYBRID_SHARD shards") {
  const Network network = with_block();
  FullyShardedOptions options = wrapping_blocks(Sharding::hybrid);
  options.shard_ranks = 2;
  const Trained trained =
      train_simulated(plan_for(network, false), 8, fsdp(options), two_samples, 1);
  const auto elements_at = [&](std::string_view site, OpKind kind) {
    std::vector<int64_t> elements;
    for (const Row& row : rows_at(trained.result, 0, site, kind)) {
      elements.push_back(row.bytes / 4);
    }
    return elements;
  };
  CHECK(elements_at(fsdp_sites::reduce_unit, OpKind::reduce_scatter) ==
        std::vector<int64_t>{72, 72, 58});
  CHECK(elements_at(fsdp_sites::reduce_replicas, OpKind::all_reduce) ==
        std::vector<int64_t>{36, 36, 29});
}

// Each block's forward of two layers runs again in the backward, for which its parameters are there
// already.
TEST_CASE("checkpointed units issue the collectives of units that are not") {
  const Network plain = with_block();
  const Network checkpointed = with_block("torch");
  const auto train_on = [](const Network& network) {
    return train_simulated(plan_for(network, true), 4, fsdp(wrapping_blocks(Sharding::full)),
                           two_samples, 2);
  };
  const Trained expected = train_on(plain);
  const Trained trained = train_on(checkpointed);
  CHECK(whole_parameters(trained, checkpointed) == whole_parameters(expected, plain));
  for (const auto& [site, kind] : {std::pair(fsdp_sites::gather_unit, OpKind::all_gather),
                                   std::pair(fsdp_sites::reduce_unit, OpKind::reduce_scatter)}) {
    CHECK(rows_at(trained.result, 0, site, kind).size() ==
          rows_at(expected.result, 0, site, kind).size());
  }
  const std::string_view again = replica_sites::recompute;
  CHECK(rows_at(trained.result, 0, again, OpKind::compute).size() == 2 * 4);
  CHECK(rows_at(expected.result, 0, again, OpKind::compute).empty());
}

// What has a no_sync accumulates under it (Lightning's block_backward_sync); fully_shard has none.
TEST_CASE("Lightning accumulates under the no_sync of FSDP") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, false);
  CHECK(FullyShardedDataParallel(plan, {}).accumulates_without_exchange());
  CHECK_FALSE(FullyShard2(plan, {}).accumulates_without_exchange());
}

// torch 2.11, _unshard_params: every unit once, outer ones first, and all of them at the same time.
TEST_CASE("summon_full_params gathers every unit that is sharded and holds them together") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, true);
  for (const auto& [sharding, gathers] :
       {std::pair(Sharding::full, size_t{3}), std::pair(Sharding::none, size_t{0})}) {
    const FullyShardedOptions options = wrapping_blocks(sharding);
    std::vector<std::unique_ptr<Strategy>> strategies;
    for (int rank = 0; rank < 2; ++rank) {
      strategies.push_back(fsdp(options)(plan));
      CHECK(strategies.back()->has_whole_parameters());
    }
    RunOptions run;
    run.world_size = 2;
    run.numerics = true;
    run.network = &network;
    const sim::ExplicitComputeCost compute;
    sim::FlatNetworkCost costs(2, BytesPerSecond(50'000'000'000), Time(500'000));
    sim::SimulationOptions simulation;
    simulation.compute = &compute;
    simulation.communication = &costs;
    std::vector<std::vector<std::vector<double>>> seen(2);
    const RunResult result = sim::simulate(run, simulation, [&](Rank& rank) {
      const auto index = static_cast<size_t>(rank.id());
      return read_whole(rank, strategies[index].get(), &seen[index]);
    });
    CHECK(rows_at(result, 0, fsdp_sites::summon, OpKind::all_gather).size() == gathers);
    if (sharding == Sharding::full) {
      // seed_everything: what each rank reads is the model that all have drawn.
      REQUIRE(seen[0].size() == 8);
      CHECK(seen[0] == seen[1]);
      CHECK(seen[0] == drawn_parameters(*strategies[0], network));
      CHECK(strategies[0]->replica().parameter_values().front().buffer == no_buffer);
    }
  }
}

// torch/distributed/algorithms/_comm_hooks/default_hooks.py: 8 = 4 * 2, 6 = 4 * 1.5.
TEST_CASE("gradients are divided before and after the sum as the framework divides them") {
  CHECK(GradientDivision::over(8).before == 4);
  CHECK(GradientDivision::over(8).after == 2);
  CHECK(GradientDivision::over(6).before == 4);
  CHECK(GradientDivision::over(6).after == 1.5);
  CHECK(GradientDivision::over(1).before == 1);
}

// torch converts a shard on a stream beside the computation, which only waits for the optimizer.
TEST_CASE("a unit is gathered while the one before it computes, also from a narrower copy") {
  const Network network = network_of_tensors({1, 1, 1});
  const TrainingPlan plan = plan_for(network, false);
  for (const std::optional<DType> type : {std::optional<DType>(), std::optional(DType::bf16)}) {
    FullyShardedOptions options;
    options.wrap.classes = {"Cost"};
    options.param_dtype = type;
    const Trained trained = train_simulated(plan, 2, fsdp(options), two_samples, 1);
    const std::vector<Row> gathers =
        rows_at(trained.result, 0, fsdp_sites::gather_unit, OpKind::all_gather);
    const std::vector<Row> forwards =
        rows_at(trained.result, 0, replica_sites::layer_forward, OpKind::compute);
    REQUIRE(gathers.size() >= 2);
    REQUIRE(forwards.size() >= 1);
    CHECK(completion_of(trained, gathers[1]).start < completion_of(trained, forwards[0]).finish);
  }
}

}  // namespace fsdp_test
