// ModelParallelStrategy's arguments, and what configure_model calls fully_shard with.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/dtype_argument.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

constexpr const char* data_parallel_size = "data_parallel_size";
constexpr const char* mesh = "fully_shard.mesh";
constexpr const char* modules = "fully_shard.modules";

constexpr std::string_view known_names[] = {
    "fully_shard.modules",
    "fully_shard.reshard_after_forward",
    "fully_shard.mp_policy.param_dtype",
    "fully_shard.mp_policy.reduce_dtype",
    "fully_shard.mesh",
    "fully_shard.offload_policy",
    "fully_shard.offload_policy.CPUOffloadPolicy",
    "fully_shard.offload_policy.CPUOffloadPolicy.pin_memory"};
constexpr std::string_view unmodelled_module_names[] = {
    "fully_shard.mp_policy.output_dtype", "fully_shard.mp_policy.cast_forward_inputs",
    "fully_shard.shard_placement_fn", "fully_shard.ignored_params"};

// lightning/pytorch/strategies/model_parallel.py; fully_shard is what its users call themselves.
constexpr std::array model_parallel_rows{
    StrategyArgument{data_parallel_size, "", "auto", "ranks among which FSDP2 shards",
                     ArgumentUse::strategy, "auto: the number of nodes"},
    StrategyArgument{"tensor_parallel_size", "", "auto",
                     "ranks among which layers are cut; only 1 is modelled", ArgumentUse::strategy,
                     "auto: the GPUs of a node"},
    StrategyArgument{"fully_shard", "map", "null",
                     "what configure_model calls fully_shard with: modules, mesh, mp_policy, ..",
                     ArgumentUse::strategy, "null: the whole model is one unit"},
    StrategyArgument{"save_distributed_checkpoint", "bool", "true",
                     "every rank writes its part of a checkpoint; false: rank 0 all of it"},
    process_group_backend,
    process_group_timeout,
};

constexpr NestedClass nested_module_classes[] = {{"fully_shard.mp_policy", "MixedPrecisionPolicy"}};

bool is_automatic(const StrategyArguments& arguments, const std::string& name) {
  const StrategyArguments::Value* value = arguments.find(name);
  return value == nullptr || std::holds_alternative<std::string>(*value);
}

// _setup_device_mesh of strategies/model_parallel.py: `auto`, the default, is the number of nodes
// for data_parallel_size, and the GPUs of a node for tensor_parallel_size.
void check_sizes(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const bool is_one_rank = plan.world_size == 1;
  const std::string tensor = "tensor_parallel_size";
  if (!is_one_rank && (is_automatic(arguments, tensor) || arguments.integer(tensor, 1) != 1)) {
    throw UnmodelledArgument(
        "tensor parallelism is not modelled yet, and it is ModelParallelStrategy's default; write "
        "tensor_parallel_size: 1 and data_parallel_size: the number of GPUs",
        tensor);
  }
  if (plan.world_size == 0 || (is_one_rank && is_automatic(arguments, data_parallel_size))) {
    return;
  }
  if (is_automatic(arguments, data_parallel_size)) {
    throw RefusedArgument(
        fmt::format("RuntimeError: data_parallel_size times tensor_parallel_size must equal the "
                    "number of ranks, {}: `auto` is the number of nodes",
                    plan.world_size),
        data_parallel_size, fmt::format("write data_parallel_size: {}", plan.world_size));
  }
  const int64_t size = arguments.integer(data_parallel_size, 0);
  if (size != plan.world_size) {
    throw RefusedArgument(
        fmt::format("RuntimeError: data_parallel_size times tensor_parallel_size must equal the "
                    "number of ranks, {} (here {} x 1)",
                    plan.world_size, size),
        data_parallel_size, fmt::format("write data_parallel_size: {}", plan.world_size));
  }
}

void set_mesh(const TrainingPlan& plan, const StrategyArguments& arguments,
              FullyShard2Options& options) {
  if (!arguments.has(mesh)) {
    return;
  }
  options.shard_ranks = mesh_argument(plan, arguments, mesh).shards;
}

void set_reshard(const TrainingPlan& plan, const StrategyArguments& arguments,
                 FullyShard2Options& options) {
  const std::string name = "fully_shard.reshard_after_forward";
  if (!arguments.has(name)) {
    return;
  }
  if (const bool* truth = std::get_if<bool>(arguments.find(name))) {
    options.reshard_after_forward = *truth;
    return;
  }
  const int64_t ranks = arguments.integer(name, 0);
  const int64_t over = options.shard_ranks > 0 ? options.shard_ranks : plan.world_size;
  if (ranks < 1 || (over > 0 && (ranks > over || over % ranks != 0))) {
    // torch/distributed/fsdp/_fully_shard/_fsdp_init.py, _get_post_forward_mesh_info
    throw RefusedArgument(
        fmt::format("ValueError: If passing reshard_after_forward as an int, it should be a factor "
                    "of {}, not {}",
                    over, ranks),
        name, "write true, false, or a number that divides the ranks that shard");
  }
  if (ranks == 1 || ranks == over) {  // nothing is freed, or all but the shard
    options.reshard_after_forward = ranks != 1;
    return;
  }
  options.reshard_to = static_cast<int32_t>(ranks);
}

// Whether host memory is pinned changes nothing here.
bool offloads(const StrategyArguments& arguments) {
  const std::string policy = "fully_shard.offload_policy";
  const bool is_object = arguments.find(policy + ".CPUOffloadPolicy") != nullptr ||
                         arguments.has(policy + ".CPUOffloadPolicy.pin_memory");
  if (!is_object && arguments.has(policy) && arguments.text(policy, "") != "CPUOffloadPolicy") {
    throw ArgumentProblem("fully_shard.offload_policy is null or CPUOffloadPolicy", policy);
  }
  return is_object || arguments.has(policy);
}

FullyShard2Options fully_shard_options(const TrainingPlan& plan, const StrategyArguments& given) {
  const StrategyArguments arguments = without_class_names(given, nested_module_classes);
  check_nested_names(arguments, {"ModelParallelStrategy", known_names, unmodelled_module_names});
  check_sizes(plan, arguments);
  FullyShard2Options options;
  set_mesh(plan, arguments, options);
  set_reshard(plan, arguments, options);
  const std::string policy = "fully_shard.mp_policy.";
  if (arguments.has(policy + "param_dtype")) {
    options.param_dtype = dtype_argument(arguments, policy + "param_dtype");
  }
  if (arguments.has(policy + "reduce_dtype")) {
    options.reduce_dtype = dtype_argument(arguments, policy + "reduce_dtype");
  }
  options.offload = offloads(arguments);
  options.saves_in_parts =
      ArgumentReader(arguments, model_parallel_rows).boolean("save_distributed_checkpoint");
  options.wrap = wrap_classes(arguments.texts(modules));
  check_classes(options.wrap, *plan.network, modules);
  // It replaces the parameters of its module alone: another module keeps the tensor that was there.
  refuse_untied(options.wrap, *plan.network, "fully_shard", modules);
  return options;
}

}  // namespace

namespace {

ArgumentsOfSize of_size(const StrategyArguments& arguments, int64_t ranks) {
  ArgumentsOfSize changed;
  if (!is_automatic(arguments, data_parallel_size)) {
    changed.values.emplace_back(data_parallel_size, std::to_string(ranks));
  }
  if (arguments.has(mesh)) {
    changed.values.emplace_back(mesh, mesh_of_size(arguments, mesh, ranks));
    if (changed.values.back().second.empty()) {
      changed.why_not = fmt::format("the shards of {} do not divide {}", mesh, ranks);
    }
  }
  return changed;
}

}  // namespace

StrategyEntry model_parallel() {
  StrategyEntry entry;
  entry.name = "ModelParallelStrategy";
  entry.class_name = "ModelParallelStrategy";
  entry.traits = {.precisions = Precisions::no_double_nor_scaler,
                  .needs_gpu = true,
                  .gathers_parameters = "unshard() of its module, or full_tensor(),"};
  entry.arguments = {model_parallel_rows.begin(), model_parallel_rows.end()};
  add_steps(fsdp2_sites::every_step, entry.sites);
  entry.of_size = of_size;
  entry.without_effect = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    std::vector<std::pair<std::string, std::string>> found;
    if (arguments.has(modules)) {
      const WrapPolicy policy = wrap_classes(arguments.texts(modules));
      if (std::string why = why_nothing_wrapped(policy, *plan.network, modules); !why.empty()) {
        found.emplace_back(modules, std::move(why));
      }
    }
    return found;
  };
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<FullyShard2>(plan, fully_shard_options(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
