// ModelParallelStrategy's arguments, and what configure_model calls fully_shard with.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

namespace lockstep {

namespace {

constexpr std::string_view known_names[] = {"fully_shard.modules",
                                            "fully_shard.reshard_after_forward",
                                            "fully_shard.mp_policy.param_dtype",
                                            "fully_shard.mp_policy.reduce_dtype",
                                            "fully_shard.mesh",
                                            "fully_shard.offload_policy"};
constexpr std::string_view unmodelled_module_names[] = {
    "fully_shard.mp_policy.output_dtype", "fully_shard.mp_policy.cast_forward_inputs",
    "fully_shard.shard_placement_fn", "fully_shard.ignored_params"};

void check_names(const StrategyArguments& arguments) {
  for (const auto& [name, value] : arguments.all()) {
    if (name.find('.') == std::string::npos || arguments.is_none(name)) {
      continue;
    }
    const bool is_unmodelled =
        std::ranges::any_of(unmodelled_module_names, [&](std::string_view each) {
          return name == each || name.starts_with(std::string(each) + ".");
        });
    if (is_unmodelled) {
      throw UnmodelledArgument(fmt::format("`{}` is not modelled yet", name));
    }
    if (std::ranges::count(known_names, name) == 0) {
      throw std::invalid_argument(fmt::format("fully_shard has no argument `{}`; known here are {}",
                                              name, fmt::join(known_names, ", ")));
    }
  }
}

// Lightning's default is tensor parallelism over the GPUs of a node.
void check_sizes(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const auto is_automatic = [&](const char* name) {
    const auto found = arguments.all().find(name);
    return found == arguments.all().end() || std::holds_alternative<std::string>(found->second);
  };
  const bool is_one_rank = plan.world_size == 1;
  if (!is_one_rank &&
      (is_automatic("tensor_parallel_size") || arguments.integer("tensor_parallel_size", 1) != 1)) {
    throw UnmodelledArgument(
        "tensor parallelism is not modelled yet, and it is ModelParallelStrategy's default; write "
        "tensor_parallel_size: 1 and data_parallel_size: the number of GPUs");
  }
  const int64_t data_parallel =
      is_automatic("data_parallel_size") ? 0 : arguments.integer("data_parallel_size", 0);
  if (plan.world_size > 0 && data_parallel != plan.world_size &&
      !(is_one_rank && is_automatic("data_parallel_size"))) {
    throw std::invalid_argument(
        fmt::format("data_parallel_size times tensor_parallel_size must be the {} ranks that there "
                    "are",
                    plan.world_size));
  }
}

void set_mesh(const TrainingPlan& plan, const StrategyArguments& arguments,
              FullyShard2Options& options) {
  if (!arguments.has("fully_shard.mesh")) {
    return;
  }
  options.shard_ranks = mesh_argument(plan, arguments, "fully_shard.mesh").shards;
}

void set_reshard(const TrainingPlan& plan, const StrategyArguments& arguments,
                 FullyShard2Options& options) {
  const std::string name = "fully_shard.reshard_after_forward";
  const auto found = arguments.all().find(name);
  if (found == arguments.all().end() || arguments.is_none(name)) {
    return;
  }
  if (const bool* truth = std::get_if<bool>(&found->second)) {
    options.reshard_after_forward = *truth;
    return;
  }
  const int64_t ranks = arguments.integer(name, 0);
  const int64_t over = options.shard_ranks > 0 ? options.shard_ranks : plan.world_size;
  if (ranks <= 1 || (over > 0 && (over % ranks != 0 || ranks >= over))) {
    throw std::invalid_argument(
        fmt::format("reshard_after_forward is true, false, or a number that divides the {} ranks "
                    "that shard and "
                    "is between 1 and them",
                    over));
  }
  if (options.shard_ranks > 0) {
    throw UnmodelledArgument(
        "a number for reshard_after_forward with a mesh of two dimensions is "
        "not modelled");
  }
  options.reshard_to = static_cast<int32_t>(ranks);
}

FullyShard2Options fully_shard_options(const TrainingPlan& plan,
                                       const StrategyArguments& arguments) {
  check_names(arguments);
  check_sizes(plan, arguments);
  FullyShard2Options options;
  set_mesh(plan, arguments, options);
  set_reshard(plan, arguments, options);
  const std::string policy = "fully_shard.mp_policy.";
  if (plan.types().is_mixed()) {
    options.param_dtype = plan.activation_dtype;
  }
  if (arguments.has(policy + "param_dtype")) {
    options.param_dtype = dtype_argument(arguments, policy + "param_dtype");
  }
  if (arguments.has(policy + "reduce_dtype")) {
    options.reduce_dtype = dtype_argument(arguments, policy + "reduce_dtype");
  }
  if (arguments.has("fully_shard.offload_policy")) {
    if (arguments.text("fully_shard.offload_policy", "") != "CPUOffloadPolicy") {
      throw std::invalid_argument("fully_shard.offload_policy is null or CPUOffloadPolicy");
    }
    options.offload = true;
  }
  options.saves_in_parts = arguments.boolean("save_distributed_checkpoint", true);
  options.wrap = wrap_classes(arguments.texts("fully_shard.modules"));
  check_classes(options.wrap, *plan.network, "fully_shard.modules");
  return options;
}

}  // namespace

StrategyEntry model_parallel() {
  StrategyEntry entry;
  entry.name = "model_parallel";
  entry.class_name = "ModelParallelStrategy";
  entry.traits = {.precisions = Precisions::no_double_nor_scaler, .needs_gpu = true};
  entry.arguments = {"data_parallel_size", "tensor_parallel_size", "save_distributed_checkpoint",
                     "fully_shard"};
  for (const std::string_view step : fsdp2_sites::every_step) {
    entry.sites.push_back({std::string(step), "", 0, 0, "", "", {}, ""});
  }
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<FullyShard2>(plan, fully_shard_options(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
