#include "model/strategy/sharded/fsdp/fully_shard_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/strategy/sharded/dtype_argument.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

namespace lockstep {

namespace {

constexpr const char* map_name = "fully_shard";

constexpr std::string_view known_names[] = {"fully_shard.modules",
                                            "fully_shard.reshard_after_forward",
                                            "fully_shard.mp_policy.param_dtype",
                                            "fully_shard.mp_policy.reduce_dtype",
                                            "fully_shard.mp_policy.cast_forward_inputs",
                                            "fully_shard.mp_policy.output_dtype",
                                            "fully_shard.mesh",
                                            "fully_shard.ignored_params",
                                            "fully_shard.offload_policy",
                                            "fully_shard.offload_policy.OffloadPolicy",
                                            "fully_shard.offload_policy.CPUOffloadPolicy",
                                            fully_shard_pin_memory};
constexpr std::string_view unmodelled_module_names[] = {"fully_shard.shard_placement_fn"};

constexpr NestedClass nested_module_classes[] = {{"fully_shard.mp_policy", "MixedPrecisionPolicy"}};

// One dimension is that of all replicas, as the mesh that fully_shard makes itself.
void check_flat_mesh(const FullyShardCaller& caller, const StrategyArguments& arguments) {
  const std::string size = arguments.texts(fully_shard_mesh).front();
  if (caller.replicas > 0 && size != std::to_string(caller.replicas)) {
    throw ArgumentProblem(
        fmt::format("{} has one dimension, of all {} ranks that shard, and not of {}",
                    fully_shard_mesh, caller.replicas, size),
        fully_shard_mesh,
        fmt::format("write [{}], or [replicas, shards], whose product is {}", caller.replicas,
                    caller.replicas));
  }
}

void set_mesh(const FullyShardCaller& caller, const StrategyArguments& arguments,
              FullyShard2Options& options) {
  if (!arguments.has(fully_shard_mesh)) {
    return;
  }
  if (is_flat_mesh(arguments, fully_shard_mesh)) {
    check_flat_mesh(caller, arguments);
    return;
  }
  if (options.tensor_ranks > 1 && !caller.meshes_beside_tensor) {
    throw UnmodelledArgument(
        "a mesh of two dimensions for fully_shard beside tensor parallelism is not modelled",
        fully_shard_mesh, "leave it out: parameters are then sharded over data_parallel_size");
  }
  options.shard_ranks = mesh_argument(caller.replicas, arguments, fully_shard_mesh).shards;
}

void set_reshard(const FullyShardCaller& caller, const StrategyArguments& arguments,
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
  const int64_t over = options.shard_ranks > 0 ? options.shard_ranks : caller.replicas;
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
  if (options.tensor_ranks > 1) {
    throw UnmodelledArgument(
        "a number for reshard_after_forward beside tensor parallelism is not modelled", name);
  }
  options.reshard_to = static_cast<int32_t>(ranks);
}

// OffloadPolicy, torch's default, offloads nothing
// (torch/distributed/fsdp/_fully_shard/_fsdp_api.py).
bool offloads(const StrategyArguments& arguments) {
  const std::string policy = "fully_shard.offload_policy";
  if (arguments.find(policy + ".OffloadPolicy") != nullptr ||
      (arguments.has(policy) && arguments.text(policy, "") == "OffloadPolicy")) {
    return false;
  }
  const bool is_object = arguments.find(policy + ".CPUOffloadPolicy") != nullptr ||
                         arguments.has(fully_shard_pin_memory);
  if (!is_object && arguments.has(policy) && arguments.text(policy, "") != "CPUOffloadPolicy") {
    throw ArgumentProblem("fully_shard.offload_policy is null, OffloadPolicy or CPUOffloadPolicy",
                          policy);
  }
  return is_object || arguments.has(policy);
}

void set_ignored_parameters(const TrainingPlan& plan, const StrategyArguments& arguments,
                            FullyShard2Options& options) {
  const std::string name = "fully_shard.ignored_params";
  options.wrap.ignored = ignored_modules(arguments, *plan.network, name);
  const bool is_narrow = options.param_dtype.value_or(plan.parameter_dtype) != plan.parameter_dtype;
  if (!options.wrap.ignored.empty() && (is_narrow || options.offload || options.tensor_ranks > 1)) {
    throw UnmodelledArgument(
        "`ignored_params` of fully_shard is modelled without offload, tensor parallelism and a "
        "narrower `param_dtype`",
        name, "freeze these layers and let fully_shard take them");
  }
}

// The loss is fp32, and the next module casts what it gets: an output that is widened is worth what
// it was.
void set_output_type(const TrainingPlan& plan, const StrategyArguments& arguments,
                     FullyShard2Options& options) {
  const std::string name = "fully_shard.mp_policy.output_dtype";
  if (!arguments.has(name)) {
    return;
  }
  const DType output = dtype_argument(arguments, name);
  const DType computed = options.param_dtype.value_or(plan.parameter_dtype);
  options.widens_output = output != computed;
  if (options.widens_output && output != DType::fp32) {
    throw UnmodelledArgument(
        "an `output_dtype` of fully_shard other than fp32 or `param_dtype` is "
        "not modelled",
        name, "write fp32, or leave it out");
  }
}

}  // namespace

bool copies_unpinned(const StrategyArguments& arguments) {
  const StrategyArguments named = with_named_objects(arguments);
  return named.has(fully_shard_pin_memory) && !named.boolean(fully_shard_pin_memory, true);
}

bool is_fully_sharded(const StrategyArguments& arguments) {
  return arguments.has(map_name) || std::ranges::any_of(arguments.all(), [](const auto& argument) {
           return argument.first.starts_with("fully_shard.");
         });
}

FullyShard2Options fully_shard_options(const TrainingPlan& plan, const StrategyArguments& given,
                                       const FullyShardCaller& caller) {
  const StrategyArguments arguments =
      without_class_names(with_named_objects(given), nested_module_classes);
  StrategyArguments nested;
  for (const auto& [name, value] : arguments.all()) {
    if (name.starts_with("fully_shard.")) {
      nested.set(name, value);
    }
  }
  check_nested_names(nested, {caller.class_name, known_names, unmodelled_module_names});
  FullyShard2Options options;
  options.tensor_ranks = caller.tensor_ranks;
  set_mesh(caller, arguments, options);
  set_reshard(caller, arguments, options);
  const std::string policy = "fully_shard.mp_policy.";
  if (arguments.has(policy + "param_dtype")) {
    options.param_dtype = dtype_argument(arguments, policy + "param_dtype");
  }
  if (arguments.has(policy + "reduce_dtype")) {
    options.reduce_dtype = dtype_argument(arguments, policy + "reduce_dtype");
  }
  options.casts_input = arguments.boolean(policy + "cast_forward_inputs", true);
  set_output_type(plan, arguments, options);
  options.offload = offloads(arguments);
  options.wrap = wrap_classes(arguments.texts(fully_shard_modules));
  check_classes(options.wrap, *plan.network, fully_shard_modules);
  set_ignored_parameters(plan, arguments, options);
  // It replaces the parameters of its module alone: another module keeps the tensor that was there.
  refuse_untied(options.wrap, *plan.network, "fully_shard", fully_shard_modules);
  return options;
}

}  // namespace lockstep
