#include "model/strategy/sharded/deepspeed/later_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {

namespace {

/// Known by the sources of releases: between the two nobody has looked, and nothing is refused.
struct LaterKey {
  std::string_view name;
  Version last_without;
  Version first_with;
  Version first_that_forbids{};  ///< of this section what it does not know; before it is not read
};
// runtime/precision_config.py, which 0.17.1 made of what was read one by one.
constexpr Version precision_is_checked{0, 17, 1};
constexpr auto later_keys = std::to_array<LaterKey>({
    {"zero_optimization.memory_efficient_linear", {0, 8, 3}, {0, 9, 0}},
    {"zero_optimization.mics_shard_size", {0, 9, 0}, {0, 9, 2}},
    {"zero_optimization.mics_hierarchical_params_gather", {0, 9, 0}, {0, 9, 2}},
    {"zero_optimization.zero_hpz_partition_size", {0, 9, 5}, {0, 10, 3}},
    {"zero_optimization.zero_quantized_weights", {0, 9, 5}, {0, 10, 3}},
    {"zero_optimization.zero_quantized_gradients", {0, 9, 5}, {0, 10, 3}},
    {"zero_optimization.zero_quantized_nontrainable_weights", {0, 9, 5}, {0, 10, 3}},
    {"zero_optimization.pipeline_loading_checkpoint", {0, 9, 5}, {0, 10, 3}},
    {"zero_optimization.override_module_apply", {0, 9, 5}, {0, 10, 3}},
    {"zero_optimization.offload_optimizer.ratio", {0, 11, 2}, {0, 12, 3}},
    {"zero_optimization.use_multi_rank_bucket_allreduce", {0, 12, 3}, {0, 12, 4}},
    {"zero_optimization.zeropp_loco_param", {0, 13, 1}, {0, 16, 4}},
    {"zero_optimization.log_trace_cache_warnings", {0, 13, 1}, {0, 16, 4}},
    {"zero_optimization.stage3_module_granularity_threshold", {0, 13, 1}, {0, 16, 4}},
    {"zero_optimization.module_granularity_threshold", {0, 13, 1}, {0, 16, 4}},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", {0, 13, 1}, {0, 16, 4}},
    {"zero_optimization.use_all_reduce_for_fetch_params", {0, 13, 1}, {0, 16, 4}},
    {"zero_optimization.zenflow", {0, 17, 3}, {0, 17, 5}},
    {"zero_optimization.enable_sanity_checks", {0, 17, 5}, {0, 17, 6}},
    {"zero_optimization.leaf_module", {0, 17, 6}, {0, 18, 0}},
    {"zero_optimization.offload_optimizer.super_offload", {0, 17, 6}, {0, 18, 0}},
    {"zero_optimization.offload_optimizer.cpuadam_cores_perc", {0, 17, 6}, {0, 18, 0}},
    {"zero_optimization.stage3_allgather_sequential", {0, 18, 0}, {0, 18, 9}},
    {"zero_optimization.allgather_sequential", {0, 18, 0}, {0, 18, 9}},
    {"zero_optimization.save_muon_momentum_buffer_in_memory", {0, 18, 0}, {0, 18, 9}},
    {"bf16.bf16_master_weights_and_grads", {0, 18, 0}, {0, 18, 9}, precision_is_checked},
    {"bf16.bf16_optimizer_states", {0, 18, 0}, {0, 18, 9}, precision_is_checked},
    {"zero_optimization.compute_grad_norm", {0, 19, 6}, {0, 19, 7}},
    {"zero_optimization.parameter_alignment", {0, 19, 6}, {0, 19, 7}},
});

std::string release_text(const Version& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

bool is_auto(const StrategyArguments::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && *text == "auto";
}

}  // namespace

// runtime/config_utils.py, DeepSpeedConfigModel: what is "auto" is dropped before. An engine that
// only evaluates is given nothing but the types, and of ZeRO stage 3 alone.
void check_later_keys(const TrainingPlan& plan, const StrategyArguments& arguments) {
  if (!plan.is_fitted) {
    return;
  }
  for (const LaterKey& later : later_keys) {
    const std::string key = fmt::format("config.{}", later.name);
    const auto found = std::ranges::find_if(arguments.all(), [&key](const auto& each) {
      return (each.first == key || each.first.starts_with(key + ".")) && !is_auto(each.second);
    });
    const bool is_forbidden =
        plan.deepspeed <= later.last_without && plan.deepspeed >= later.first_that_forbids;
    if (is_forbidden && found != arguments.all().end()) {
      throw RefusedArgument(
          fmt::format("ValidationError: extra fields not permitted: DeepSpeed {} does not have "
                      "`{}`, which {} has",
                      release_text(plan.deepspeed), later.name, release_text(later.first_with)),
          found->first, "leave it out", ArgumentProblem::Part::name);
    }
  }
}

}  // namespace lockstep
