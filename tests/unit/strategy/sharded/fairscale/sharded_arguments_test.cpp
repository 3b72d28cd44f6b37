// What DDPShardedStrategy and its spawned twin hand to FairScale: pytorch-lightning 1.4.9 to 1.9.5,
// plugins/training_type/sharded*.py and strategies/sharded*.py; fairscale 0.4.0 to 0.4.13,
// nn/data_parallel/sharded_ddp.py, ShardedDataParallel.__init__.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fairscale/fairscale.hpp"
#include "model/strategy/sharded/fairscale/fairscale_sites.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace sharded_arguments_test {

namespace {

StrategyArguments with(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set(name, value);
  return arguments;
}

std::unique_ptr<Strategy> make(const StrategyEntry& entry, const StrategyArguments& arguments,
                               bool is_fitted = true, size_t optimizers = 1) {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.is_fitted = is_fitted;
  plan.optimizers.resize(optimizers);
  return entry.make(plan, arguments);
}

size_t rows_of_step(const StrategyEntry& entry, const StrategyArguments& arguments,
                    std::string_view site, int32_t ranks = 2) {
  const Network network = with_block();
  const Trained trained = train_simulated(
      plan_for(network, false), ranks,
      [&](const TrainingPlan& plan) { return entry.make(plan, arguments); }, two_samples, 1);
  return rows_at(trained.result, 0, site, OpKind::reduce).size();
}

}  // namespace

// DDPStrategy keeps what it does not know for DistributedDataParallel; configure_ddp of the sharded
// classes gives it to ShardedDataParallel, whose arguments have none of these names.
TEST_CASE("arguments of DistributedDataParallel raise where ShardedDataParallel is made") {
  for (const StrategyEntry& entry : {sharded_data_parallel(), spawned_sharded_data_parallel()}) {
    for (const char* name : {"find_unused_parameters", "static_graph", "bucket_cap_mb",
                             "gradient_as_bucket_view", "check_reduction"}) {
      INFO(entry.name << " " << name);
      CHECK_THROWS_AS(make(entry, with(name, false)), RefusedArgument);
      CHECK_NOTHROW(make(entry, with(name, std::monostate())));
      // From 1.5 on the model is wrapped for a fit alone (DDPPlugin.pre_dispatch); before, always.
      CHECK_NOTHROW(make(entry, with(name, false), false));
      StrategyArguments in_1_4 = with(name, false);
      in_1_4.set("wraps_without_fit", true);
      CHECK_THROWS_AS(make(entry, in_1_4, false), RefusedArgument);
    }
    CHECK_NOTHROW(make(entry, {}));
  }
}

// DDPStrategy reads model_averaging_period itself, and DDPShardedStrategy overrides what would use
// it; DDPSpawnStrategy does not know it.
TEST_CASE("hooks and averaging have no effect under ddp_sharded, and averaging none when spawned") {
  const StrategyEntry entry = sharded_data_parallel();
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  StrategyArguments arguments = with("ddp_comm_hook", std::string("fp16_compress_hook"));
  arguments.set("ddp_comm_state.PowerSGDState.matrix_approximation_rank", int64_t{1});
  arguments.set("ddp_comm_state.PowerSGDState.start_powerSGD_iter", int64_t{2});
  arguments.set("ddp_comm_wrapper", std::monostate());
  arguments.set("model_averaging_period", int64_t{4});
  CHECK_NOTHROW(entry.make(plan, arguments));
  const auto found = entry.without_effect(plan, arguments);
  REQUIRE(found.size() == 3);
  CHECK(found[0].first == "ddp_comm_hook");
  CHECK(found[1].first == "ddp_comm_state");
  CHECK(found[2].first == "model_averaging_period");
  CHECK(entry.without_effect(plan, {}).empty());
  CHECK_THROWS_AS(make(spawned_sharded_data_parallel(), arguments), RefusedArgument);
}

// fairscale/nn/data_parallel/sharded_ddp.py turns it off with a warning; without buffers it counts.
TEST_CASE("reduce_fp16 has no effect where gradients share buffers") {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.world_size = 4;
  plan.node_ranks = 4;
  StrategyArguments arguments = with("reduce_fp16", true);
  const auto noted = [&](const StrategyEntry& entry) {
    const auto found = entry.without_effect(plan, arguments);
    return !found.empty() && found[0].first == "reduce_fp16";
  };
  CHECK_FALSE(noted(sharded_data_parallel()));
  CHECK(noted(spawned_sharded_data_parallel()));
  plan.node_ranks = 2;  // Lightning asks for buffers on several nodes
  CHECK(noted(sharded_data_parallel()));
  arguments.set("reduce_buffer_size", int64_t{0});
  CHECK_FALSE(noted(sharded_data_parallel()));
  plan.node_ranks = 4;
  arguments.set("reduce_buffer_size", int64_t{1000});
  CHECK(noted(sharded_data_parallel()));
}

// with_block() has 8 tensors; both ranks own some. _set_ddp_kwargs of DDPShardedStrategy asks for
// no buffer on one node; DDPSpawnShardedStrategy has no such function, and 2^23 elements hold all.
TEST_CASE("the spawned strategy reduces buffers on one node, where ddp_sharded reduces tensors") {
  using namespace fairscale_sites;
  CHECK(rows_of_step(sharded_data_parallel(), {}, reduce_gradient) == 8);
  CHECK(rows_of_step(sharded_data_parallel(), {}, reduce_bucket) == 0);
  CHECK(rows_of_step(spawned_sharded_data_parallel(), {}, reduce_gradient) == 0);
  CHECK(rows_of_step(spawned_sharded_data_parallel(), {}, reduce_bucket) == 2);
  const StrategyArguments none = with("reduce_buffer_size", int64_t{0});
  CHECK(rows_of_step(spawned_sharded_data_parallel(), none, reduce_gradient) == 8);
  // ShardedDataParallel.__init__: a single rank has no buckets.
  CHECK(rows_of_step(spawned_sharded_data_parallel(), {}, reduce_bucket, 1) == 0);
}

// forward() calls _detect_train_change: without it nothing changes while nobody freezes anything.
TEST_CASE("auto_refresh_trainable matters where optimizers freeze each other's parameters") {
  const StrategyArguments off = with("auto_refresh_trainable", false);
  CHECK_NOTHROW(make(sharded_data_parallel(), off));
  CHECK_THROWS_AS(make(sharded_data_parallel(), off, true, 2), UnmodelledArgument);
  CHECK_NOTHROW(make(sharded_data_parallel(), with("auto_refresh_trainable", true), true, 2));
}

// ParallelPlugin.block_backward_sync of 1.4.9 knows DistributedDataParallel alone.
TEST_CASE("Lightning 1.4 reduces every accumulated micro-batch of ddp_sharded") {
  CHECK(make(sharded_data_parallel(), {})->accumulates_without_exchange());
  CHECK_FALSE(make(sharded_data_parallel(), with("accumulates_under_no_sync", false))
                  ->accumulates_without_exchange());
}

}  // namespace sharded_arguments_test
