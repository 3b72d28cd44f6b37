#include "model/strategy/sharded/deepspeed/removed_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {

namespace {

// runtime/config.py, _reject_removed_config_keys: 0.19.7 has it, 0.19.6 has not.
constexpr Version first_that_rejects{0, 19, 7};

struct RemovedKey {
  std::string_view name;
  std::string_view instead = "leave it out";
};
constexpr auto removed_keys = std::to_array<RemovedKey>({
    {"nebula"},
    {"compression_training"},
    {"amp", "leave it out: `precision` of the Trainer asks for fp16 or bf16"},
    {"quantize_training"},
    {"sparse_gradients"},
    {"eigenvalue"},
    {"sparse_attention"},
    {"elasticity"},
    {"graph_harvesting"},
    {"curriculum_learning", "leave it out, or write it below data_efficiency.data_sampling"},
    {"progressive_layer_drop"},
    {"zero_optimization.mics_shard_size"},
    {"zero_optimization.mics_hierarchical_params_gather"},
    {"zero_optimization.zeropp_loco_param"},
});

}  // namespace

// An engine that only evaluates is given nothing but the types, and of ZeRO stage 3 alone.
void check_removed_keys(const TrainingPlan& plan, const StrategyArguments& arguments) {
  if (plan.deepspeed < first_that_rejects || !plan.is_fitted) {
    return;
  }
  for (const RemovedKey& removed : removed_keys) {
    const std::string key = fmt::format("config.{}", removed.name);
    const auto found = std::ranges::find_if(arguments.all(), [&key](const auto& each) {
      return each.first == key || each.first.starts_with(key + ".");
    });
    if (found != arguments.all().end()) {
      throw RefusedArgument(
          fmt::format("DeepSpeedConfigError: `{}` has been removed, and DeepSpeed from 0.19.7 on "
                      "refuses the key whatever it says, also `enabled: false`",
                      removed.name),
          found->first, std::string(removed.instead), ArgumentProblem::Part::name);
    }
  }
}

}  // namespace lockstep
