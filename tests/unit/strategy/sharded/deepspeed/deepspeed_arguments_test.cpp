// Keys of a DeepSpeed configuration: what is refused, what is not modelled, and what clips.
#include <catch2/catch.hpp>
#include <tuple>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace deepspeed_arguments_test {
using Catch::Matchers::Contains;

namespace {

std::unique_ptr<Strategy> made(const std::string& key, const StrategyArguments::Value& value) {
  static const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.deepspeed = {0, 19, 6};  // which still has all keys
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", int64_t{2});
  arguments.set("config.zero_allow_untested_optimizer", true);
  arguments.set("config." + key, value);
  return deepspeed().make(plan, arguments);
}

}  // namespace

TEST_CASE("a wrong key or value of a DeepSpeed configuration is refused with what is wrong") {
  CHECK_THROWS_WITH(made("zero_optimisation.stage", int64_t{2}),
                    Contains("no configuration key `zero_optimisation.stage`"));
  CHECK_THROWS_WITH(made("fp16", true), Contains("`fp16`") && Contains("keys of its own"));
  CHECK_THROWS_WITH(made("zero_optimization.reduce_bucket_size", 1e99), Contains("at most 1e+18"));
  CHECK_THROWS_WITH(made("zero_optimization.reduce_bucket_size", int64_t{0}),
                    Contains("at least 1"));
}

TEST_CASE("a misspelt key of a DeepSpeed configuration is answered with the key that is near") {
  const auto remedy = [](const std::string& key) -> std::string {
    try {
      made(key, int64_t{2});
    } catch (const ArgumentProblem& error) {
      CHECK(error.argument() == "config." + key);
      return error.remedy();
    }
    return "it was taken";
  };
  CHECK(remedy("zero_optimisation.stage") == "did you mean `zero_optimization`?");
  CHECK(remedy("zero_optimization.stagee") == "did you mean `zero_optimization.stage`?");
  CHECK(remedy("zero_optimization.offload_optimizer.devise") ==
        "did you mean `zero_optimization.offload_optimizer.device`?");
  CHECK(remedy("gradient_cliping") == "did you mean `gradient_clipping`?");
  CHECK(remedy("stage") == "did you mean `zero_optimization.stage`?");  // its group is missing
  CHECK(remedy("bf16.on") ==
        "`bf16` holds enabled, check_grad_overflow, immediate_grad_update, "
        "bf16_master_weights_and_grads, bf16_optimizer_states");
  CHECK(remedy("learning_rate") == "");
}

TEST_CASE("keys of DeepSpeedZeroConfig have other names beside, and some replaced others") {
  StrategyArguments given;
  given.set("config.zero_optimization.stage", int64_t{3});
  given.set("config.zero_optimization.prefetch_bucket_size", int64_t{7});
  given.set("config.zero_optimization.stage3_model_persistence_threshold", int64_t{9});
  given.set("config.zero_optimization.cpu_offload", true);
  given.set("config.zero_optimization.cpu_offload_param", false);
  const DeepSpeedOptions options = deepspeed_configuration(given);
  CHECK(options.prefetch_bucket_size == 7);
  CHECK(options.model_persistence_threshold == 9);
  CHECK(options.offloads_optimizer);
  CHECK_FALSE(options.offloads_parameters);
  // read_zero_config_deprecated: a boolean is stage 1 or 0.
  CHECK(deepspeed_configuration([] {
          StrategyArguments former;
          former.set("config.zero_optimization", true);
          return former;
        }())
            .stage == 1);
}

TEST_CASE("a count in a DeepSpeed configuration is a whole number") {
  CHECK_THROWS_WITH(made("zero_optimization.stage", 2.5), Contains("must be a whole number"));
  CHECK_NOTHROW(made("zero_optimization.reduce_bucket_size", 5e8));
}

TEST_CASE("accumulation in a DeepSpeed configuration is refused, as Lightning refuses it") {
  try {
    made("gradient_accumulation_steps", int64_t{4});
    FAIL("it must be refused");
  } catch (const RefusedArgument& refused) {
    CHECK(refused.argument() == "config.gradient_accumulation_steps");
    CHECK_THAT(refused.remedy(), Contains("accumulate_grad_batches"));
  }
}

TEST_CASE("what DeepSpeed has and is not modelled is refused as such, unless it asks for nothing") {
  const std::string key = "zero_optimization.zero_quantized_weights";
  CHECK_THROWS_AS(made(key, true), UnmodelledArgument);
  CHECK_NOTHROW(made(key, false));
  const std::vector<std::tuple<const char*, StrategyArguments::Value, const char*>> unmodelled = {
      {"zero_optimization.zero_quantized_gradients", true, "zero_hpz_partition_size"},
      {"zero_optimization.mics_shard_size", int64_t{2}, "MiCS"},
      {"aio.use_gds", true, "through host memory"}};
  for (const auto& [name, value, instead] : unmodelled) {
    INFO(name);
    try {
      made(name, value);
      FAIL("it is not modelled");
    } catch (const UnmodelledArgument& error) {
      CHECK(error.argument() == std::string("config.") + name);
      CHECK_THAT(error.what(), Contains(instead));
    }
  }
}

// deepspeed/runtime/activation_checkpointing/checkpointing.py of 0.16.4: CheckpointFunction and
// non_reentrant_checkpoint read these switches, and configure() asserts on one of them.
TEST_CASE(
    "switches of DeepSpeed's own checkpointing have no effect on modules that torch checkpoints") {
  const std::string section = "config.activation_checkpointing.";
  TrainingPlan plan;
  StrategyArguments of_class;
  of_class.set("partition_activations", true);
  of_class.set("cpu_checkpointing", true);
  StrategyArguments of_config;
  of_config.set("config.zero_optimization.stage", int64_t{2});
  of_config.set(section + "partition_activations", true);
  const auto noted = deepspeed().without_effect(plan, of_class);
  REQUIRE(noted.size() == 2);
  CHECK(noted[0].first == "partition_activations");
  CHECK(noted[1].first == "cpu_checkpointing");
  const auto configured = deepspeed().without_effect(plan, of_config);
  REQUIRE(configured.size() == 1);
  CHECK(configured[0].first == section + "partition_activations");
  CHECK_NOTHROW(made("activation_checkpointing.partition_activations", true));
  CHECK_NOTHROW(made("activation_checkpointing.number_checkpoints", int64_t{4}));
  try {
    made("activation_checkpointing.contiguous_memory_optimization", true);
    FAIL("configure() asserts partitioned activations");
  } catch (const RefusedArgument& refused) {
    CHECK(refused.argument() == section + "contiguous_memory_optimization");
  }
}

TEST_CASE("what offloads or scales beyond what DeepSpeed can is said of its argument") {
  const auto of_class = [](const std::string& name, const StrategyArguments::Value& value) {
    static const Network network = small_network();
    TrainingPlan plan;
    plan.network = &network;
    StrategyArguments arguments;
    arguments.set(name, value);
    return deepspeed().make(plan, arguments);
  };
  CHECK_NOTHROW(of_class("offload_optimizer_device", std::string("nvme")));
  CHECK_THROWS_AS(of_class("offload_optimizer_device", std::string("disk")), ArgumentProblem);
  CHECK_THROWS_WITH(of_class("loss_scale", -1.0), Contains("loss_scale must be 0"));
  CHECK_THROWS_WITH(of_class("hysteresis", int64_t{0}), Contains("hysteresis must be at least 1"));
  CHECK_THROWS_WITH(of_class("loss_scale_window", int64_t{0}), Contains("must be at least 1"));
  CHECK_THROWS_WITH(of_class("initial_scale_power", int64_t{-2000}), Contains("-1074"));
  CHECK_THROWS_AS(of_class("stage", int64_t{4}), RefusedArgument);
}

TEST_CASE("a drive without a path is refused, as DeepSpeed cannot join it to a folder") {
  const std::string device = "zero_optimization.offload_optimizer.device";
  CHECK_THROWS_AS(made(device, std::string("nvme")), RefusedArgument);
  CHECK_THROWS_WITH(made(device, std::string("disk")), Contains("cpu, nvme or none"));
}

TEST_CASE("a drive at stage 2, without offload, or by another count of threads changes nothing") {
  StrategyArguments arguments;
  arguments.set("offload_optimizer", true);
  arguments.set("offload_optimizer_device", std::string("nvme"));
  arguments.set("offload_params_device", std::string("nvme"));
  arguments.set("thread_count", int64_t{4});
  const auto found = deepspeed().without_effect(TrainingPlan{}, arguments);
  REQUIRE(found.size() == 3);
  CHECK(found[0].first == "offload_optimizer_device");
  CHECK_THAT(found[0].second, Contains("stage 3 alone"));
  CHECK(found[1].first == "offload_params_device");
  CHECK(found[2].first == "thread_count");
}

TEST_CASE("arguments that change nothing are named") {
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", int64_t{1});
  arguments.set("config.zero_optimization.offload_param.device", std::string("cpu"));
  arguments.set("stage", int64_t{3});
  arguments.set("initial_scale_power", int64_t{8});  // Lightning makes the group "fp16" of it
  TrainingPlan plan;
  plan.activation_dtype = DType::fp16;
  const auto found = deepspeed().without_effect(plan, arguments);
  REQUIRE(found.size() == 2);
  CHECK(found[0].first == "stage");
  CHECK(found[1].first == "config.zero_optimization.offload_param.device");
}

TEST_CASE("a DeepSpeed configuration clips by norm where it says so") {
  const GradientClipping clipping = made("gradient_clipping", 0.5)->configured_clipping().value();
  CHECK(clipping.algorithm == GradientClipping::Algorithm::norm);
  CHECK(clipping.limit == 0.5);
  CHECK(made("gradient_clipping", 0.0)->configured_clipping()->algorithm ==
        GradientClipping::Algorithm::none);
}

}  // namespace deepspeed_arguments_test
