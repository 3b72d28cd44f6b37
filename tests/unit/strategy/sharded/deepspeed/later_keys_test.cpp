// Keys of DeepSpeed's configuration by release, from deepspeed/runtime/zero/config.py,
// zero/offload_config.py and precision_config.py of the releases that are named.
#include "model/strategy/sharded/deepspeed/later_keys.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace later_keys_test {
using Catch::Matchers::Contains;

namespace {

// What becomes of a configuration of stage 2 with one key more: "", "unmodelled", or why the
// release refuses it.
std::string answer(const Version& release, const std::string& key,
                   const StrategyArguments::Value& value) {
  static const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.deepspeed = release;
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", int64_t{2});
  arguments.set("config.zero_allow_untested_optimizer", true);
  arguments.set("config." + key, value);
  try {
    deepspeed().make(plan, arguments);
  } catch (const RefusedArgument& refused) {
    CHECK(refused.argument() == "config." + key);
    return refused.what();
  } catch (const UnmodelledArgument& unmodelled) {
    CHECK(unmodelled.argument() == "config." + key);
    return "unmodelled";
  }
  return "";
}

const std::string zero = "zero_optimization.";

}  // namespace

TEST_CASE("a key is refused by the releases of DeepSpeed that do not have it") {
  CHECK_THAT(answer({0, 11, 2}, zero + "use_multi_rank_bucket_allreduce", true),
             Contains("DeepSpeed 0.11.2 does not have") && Contains("which 0.12.4 has"));
  CHECK(answer({0, 12, 4}, zero + "use_multi_rank_bucket_allreduce", true).empty());
  CHECK_THAT(answer({0, 9, 0}, zero + "zero_hpz_partition_size", int64_t{1}), Contains("0.10.3"));
  CHECK(answer({0, 10, 3}, zero + "zero_hpz_partition_size", int64_t{1}).empty());
  CHECK_THAT(answer({0, 17, 3}, zero + "zenflow.topk_ratio", 0.1), Contains("0.17.5"));
  CHECK_THAT(answer({0, 17, 6}, zero + "offload_optimizer.super_offload", false),
             Contains("0.18.0"));
  CHECK_THAT(answer({0, 19, 6}, zero + "compute_grad_norm", true), Contains("0.19.7"));
  // config_utils.py drops what is "auto" before pydantic sees it.
  CHECK(answer({0, 11, 2}, zero + "use_multi_rank_bucket_allreduce", std::string("auto")).empty());
}

// Up to 0.17.0 values of `bf16` are read one by one, and what nobody asks for is not seen.
TEST_CASE("sections of precision forbid what they do not know from 0.17.1 on") {
  CHECK(answer({0, 17, 0}, "bf16.bf16_optimizer_states", false).empty());
  CHECK_THAT(answer({0, 17, 1}, "bf16.bf16_optimizer_states", false), Contains("0.18.9"));
  CHECK(answer({0, 18, 9}, "bf16.bf16_optimizer_states", false).empty());
}

TEST_CASE("keys of DeepSpeed that change nothing here are taken") {
  for (const char* key : {"bf16.check_grad_overflow", "bf16.immediate_grad_update",
                          "comms_logger.enabled", "flops_profiler.enabled", "tensorboard.enabled",
                          "csv_monitor.enabled", "zero_optimization.log_trace_cache_warnings",
                          "zero_optimization.save_muon_momentum_buffer_in_memory",
                          "zero_optimization.compute_grad_norm"}) {
    INFO(key);
    CHECK(answer({0, 19, 8}, key, true).empty());
  }
  CHECK(answer({0, 19, 8}, zero + "offload_optimizer.cpuadam_cores_perc", 0.5).empty());
}

TEST_CASE(
    "keys of DeepSpeed that would change calls or memory are not modelled where they say so") {
  for (const char* key :
       {"bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states",
        "fp16.fp16_master_weights_and_grads", "hybrid_engine.enabled",
        "zero_optimization.allgather_sequential", "zero_optimization.stage3_allgather_sequential",
        "zero_optimization.parameter_alignment", "zero_optimization.enable_sanity_checks",
        "zero_optimization.offload_optimizer.super_offload"}) {
    INFO(key);
    CHECK(answer({0, 19, 8}, key, true) == "unmodelled");
    CHECK(answer({0, 19, 8}, key, false).empty());
  }
  CHECK(answer({0, 19, 8}, zero + "compute_grad_norm", false) == "unmodelled");
  CHECK(answer({0, 19, 8}, zero + "zenflow.update_interval", int64_t{1}) == "unmodelled");
  CHECK(answer({0, 19, 8}, zero + "leaf_module.classes", std::vector<std::string>{"Block"}) ==
        "unmodelled");
  CHECK(answer({0, 19, 8}, zero + "leaf_module.classes", std::vector<std::string>{}).empty());
}

// runtime/config.py, get_checkpoint_tag_validation_mode: in any case of letters.
TEST_CASE("ranks compare the name of a checkpoint unless tag_validation is Ignore") {
  const auto compares = [](const std::string& mode) {
    StrategyArguments arguments;
    arguments.set("config.checkpoint.tag_validation", mode);
    return deepspeed_configuration(arguments).compares_tags;
  };
  CHECK(deepspeed_configuration({}).compares_tags);
  CHECK(compares("Warn"));
  CHECK(compares("FAIL"));
  CHECK_FALSE(compares("Ignore"));
  CHECK_THAT(answer({0, 19, 8}, "checkpoint.tag_validation", std::string("off")),
             Contains("invalid tag_validation"));
}

}  // namespace later_keys_test
