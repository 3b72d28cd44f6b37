// DDPFullyShardedStrategy's arguments, as Lightning 1.x hands them to FullyShardedDataParallel.
#include <fmt/format.h>

#include <array>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/dtype_argument.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"
#include "model/strategy/sharded/trainer_objects.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

constexpr std::string_view fairscale_names[] = {
    "auto_wrap_policy.ModuleWrapPolicy.module_classes",
    "auto_wrap_policy.transformer_auto_wrap_policy.transformer_layer_cls",
    "auto_wrap_policy.size_based_auto_wrap_policy.min_num_params"};

// pytorch_lightning/strategies/fully_sharded.py up to 1.9. It has no auto_wrap_policy: what
// configure_sharded_model wraps stands here.
constexpr std::array fully_sharded_rows{
    StrategyArgument{"cpu_offload", "bool", "false",
                     "shards, their gradients and optimizer state are in host memory"},
    StrategyArgument{"flatten_parameters", "bool", "true",
                     "the parameters of a unit are one flat tensor; false is not modelled"},
    StrategyArgument{"reshard_after_forward", "bool", "true",
                     "units are freed after their forward, and gathered again for their backward"},
    StrategyArgument{"move_grads_to_cpu", "bool", "null",
                     "gradients of shards are in host memory; modelled as `cpu_offload` has it",
                     ArgumentUse::strategy, "null: as `cpu_offload`"},
    StrategyArgument{"fp32_reduce_scatter", "bool", "null",
                     "gradients travel in fp32, under precision 16", ArgumentUse::strategy,
                     "null: false"},
    StrategyArgument{"compute_dtype", "text", "null",
                     "type of gathered parameters and of the layers", ArgumentUse::strategy,
                     "null: fp16 under precision 16, else as stored"},
    StrategyArgument{"bucket_cap_mb", "float", "25",
                     "MiB of gradients that are reduced together; 0: each unit by itself"},
    StrategyArgument{"auto_wrap_policy", "", "null",
                     "what configure_sharded_model wraps: classes, blocks, or a policy",
                     ArgumentUse::strategy, "null: the whole model is one unit"},
    StrategyArgument{"min_num_params", "int", "null",
                     "configure_sharded_model calls auto_wrap: modules of so many elements are "
                     "units",
                     ArgumentUse::strategy, "null: it does not; auto_wrap itself takes 100000000"},
    StrategyArgument{"state_dict_to_cpu", "bool", "true",
                     "a state_dict is in host memory; false: clones on every GPU"},
    process_group_backend,
    trainer_objects[0],
    trainer_objects[1],
    trainer_objects[2],
    trainer_objects[3],
    trainer_objects[4],
};

void check_modelled(const StrategyArguments& arguments) {
  const StrategyArgumentReader read(arguments, fully_sharded_rows);
  check_nested_names(arguments, {"DDPFullyShardedStrategy", fairscale_names});
  if (!read.boolean("flatten_parameters")) {
    throw UnmodelledArgument(
        "`flatten_parameters: false` of DDPFullyShardedStrategy, with which every parameter is "
        "gathered by itself, is not modelled",
        "flatten_parameters", "leave it out");
  }
  const bool offloads = read.boolean("cpu_offload");
  if (arguments.has("move_grads_to_cpu") && read.boolean("move_grads_to_cpu") != offloads) {
    throw UnmodelledArgument(
        "`move_grads_to_cpu` of DDPFullyShardedStrategy is modelled only with the value of "
        "`cpu_offload`, which is its default: gradients and the parameters that they update would "
        "lie on different devices",
        "move_grads_to_cpu", "leave it out");
  }
}

// mixed_precision=(precision == "16"): under bf16 FairScale computes in the stored type.
void read_types(const TrainingPlan& plan, const StrategyArguments& arguments,
                FairScaleShardingOptions& options) {
  const bool is_mixed = plan.types().is_mixed() && plan.activation_dtype == DType::fp16;
  options.refuses_norm = plan.types().is_mixed();
  if (is_mixed) {
    options.compute_dtype = DType::fp16;
  }
  if (arguments.has("compute_dtype")) {
    const DType asked = dtype_argument(arguments, "compute_dtype");
    if (!is_mixed && asked != plan.parameter_dtype) {
      throw ArgumentProblem(
          "compute_dtype of DDPFullyShardedStrategy needs precision 16, or the type of the "
          "parameters: all_gather cannot fill a tensor of a different type",
          "compute_dtype");
    }
    options.compute_dtype = asked;
  }
  const StrategyArgumentReader read(arguments, fully_sharded_rows);
  options.fp32_reduce_scatter = read.boolean("fp32_reduce_scatter");
  if (options.fp32_reduce_scatter && !is_mixed) {
    throw RefusedArgument("ValueError: fp32_reduce_scatter requires mixed_precision=True",
                          "fp32_reduce_scatter", "use precision 16");
  }
}

FairScaleShardingOptions fully_sharded_options(const TrainingPlan& plan,
                                               const StrategyArguments& arguments) {
  check_modelled(arguments);
  const StrategyArgumentReader read(arguments, fully_sharded_rows);
  FairScaleShardingOptions options;
  options.reshard_after_forward = read.boolean("reshard_after_forward");
  options.bucket_cap_mb = read.number("bucket_cap_mb");
  options.cpu_offload = read.boolean("cpu_offload");
  options.state_dict_to_cpu = read.boolean("state_dict_to_cpu");
  read_types(plan, arguments, options);
  options.wrap = wrap_policy(arguments);
  check_classes(options.wrap, *plan.network, "auto_wrap_policy");
  if (arguments.has("min_num_params")) {
    if (arguments.has("auto_wrap_policy") && options.wrap.min_num_params == 0) {
      throw ArgumentProblem(
          "min_num_params has no effect beside an auto_wrap_policy that names classes",
          "min_num_params");
    }
    options.wrap.min_num_params = read.integer("min_num_params");
    if (options.wrap.min_num_params < 1) {
      throw ArgumentProblem("strategy argument min_num_params must be at least 1",
                            "min_num_params");
    }
  }
  refuse_untied(options.wrap, *plan.network, "FairScale's FullyShardedDataParallel",
                arguments.has("min_num_params") ? "min_num_params" : "auto_wrap_policy");
  options.wrapped_by_model = options.wrap.min_num_params > 0 || options.wrap.repeated_blocks ||
                             !options.wrap.classes.empty();
  return options;
}

}  // namespace

StrategyEntry fairscale_fully_sharded() {
  StrategyEntry entry;
  entry.name = "ddp_fully_sharded";
  entry.class_name = "DDPFullyShardedStrategy";
  entry.traits = {.precisions = Precisions::no_double,
                  .needs_gpu = true,
                  .accumulates_whole_gradients = true,
                  .loss_scaling = LossScaling::of_trainer,
                  .takes_apex = false,
                  .takes_tensor_norms = true,
                  .gathers_parameters = "summon_full_params"};
  entry.traits.world_is_data_parallel = true;
  entry.arguments = {fully_sharded_rows.begin(), fully_sharded_rows.end()};
  add_steps(fully_sharded_sites::every_step, entry.sites);
  entry.gives_parts = [](const TrainingPlan&, const StrategyArguments&) { return true; };
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<FairScaleFullySharded>(plan, fully_sharded_options(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
