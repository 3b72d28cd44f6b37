// DeepSpeedStrategy's arguments and DeepSpeed's own configuration.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/sharded/deepspeed/configuration_checks.hpp"
#include "model/strategy/sharded/deepspeed/configured_objects.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_argument_rows.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_keys.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_stage0.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_stage3.hpp"
#include "model/strategy/sharded/deepspeed/idle_settings.hpp"
#include "model/strategy/sharded/deepspeed/later_keys.hpp"
#include "model/strategy/sharded/deepspeed/optimizer_checks.hpp"
#include "model/strategy/sharded/deepspeed/removed_keys.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

// What deepspeed.checkpointing.checkpoint reads, and nothing else of DeepSpeed: a module would have
// to call it, and those that are modelled are checkpointed by torch or FairScale.
constexpr std::array<const char*, 4> of_activations = {"partition_activations", "cpu_checkpointing",
                                                       "contiguous_memory_optimization",
                                                       "synchronize_checkpoint_boundary"};

bool is_drive(const std::string& where, const char* device) {
  if (where != "cpu" && where != "nvme") {
    throw ArgumentProblem(fmt::format("strategy argument {} must be cpu or nvme", device), device);
  }
  return where == "nvme";
}

// `thread_count` is not the key that DeepSpeed reads (swap_tensor/aio_config.py).
void set_offload(const StrategyArgumentReader& read, DeepSpeedOptions& options) {
  options.offloads_optimizer = read.boolean("offload_optimizer");
  options.offloads_parameters = read.boolean("offload_parameters");
  if (read.boolean("cpu_offload") || read.boolean("cpu_offload_params") ||
      read.boolean("cpu_offload_use_pin_memory")) {  // then they replace those of today
    options.offloads_optimizer = read.boolean("cpu_offload");
    options.offloads_parameters = read.boolean("cpu_offload_params");
  }
  const auto goes_on = [&](const char* device) { return is_drive(read.text(device), device); };
  DriveOptions& drive = options.drive;
  drive.optimizer = goes_on("offload_optimizer_device") && options.offloads_optimizer;
  drive.parameters = goes_on("offload_params_device") && options.offloads_parameters;
  const auto count = [&](const char* name, int64_t least) {
    return argument_at_least(least, name, read.integer(name));
  };
  drive.optimizer_buffers = count("optimizer_buffer_count", 1);
  drive.parameter_buffers = count("params_buffer_count", 0);
  drive.parameter_buffer_elements = count("params_buffer_size", 0);
  drive.parameters_in_host = count("max_in_cpu", 0);
  drive.block_bytes = count("block_size", 1);
}

// Arguments of Lightning's class (strategies/deepspeed.py), which makes a configuration of them.
DeepSpeedOptions from_arguments(const StrategyArguments& arguments) {
  const StrategyArgumentReader read(arguments, deepspeed_arguments());
  DeepSpeedOptions options;
  options.stage = read.boolean("zero_optimization") ? read.integer("stage") : 0;
  options.contiguous_gradients = read.boolean("contiguous_gradients");
  options.overlap_comm = read.boolean("overlap_comm");
  options.reduce_scatter = read.boolean("reduce_scatter");
  options.reduce_bucket_size =
      argument_at_least(1, "reduce_bucket_size", read.integer("reduce_bucket_size"));
  options.sub_group_size = argument_at_least(1, "sub_group_size", read.integer("sub_group_size"));
  set_offload(read, options);
  if (arguments.has("remote_device")) {
    is_drive(read.text("remote_device"), "remote_device");
  }
  for (const char* name : of_activations) {
    read.boolean(name);  // of another type it is refused
  }
  options.loss_scale = deepspeed_loss_scale(arguments, "");
  return options;
}

DeepSpeedOptions options_from(const StrategyArguments& arguments) {
  return has_deepspeed_configuration(arguments) ? deepspeed_configuration(arguments)
                                                : from_arguments(arguments);
}

std::string key_of_activations(const StrategyArguments& arguments, const char* name) {
  return (has_deepspeed_configuration(arguments) ? "config.activation_checkpointing." : "") +
         std::string(name);
}

// deepspeed.checkpointing.configure, which Lightning calls whether or not a module is checkpointed.
void check_activations(const StrategyArguments& arguments) {
  const auto asks = [&arguments](const char* name) {
    return arguments.boolean(key_of_activations(arguments, name), false);
  };
  if (asks("contiguous_memory_optimization") && !asks("partition_activations")) {
    throw RefusedArgument(
        "AssertionError: Contiguous Checkpointing is only available with partitioned activations. "
        "Set partitioned activations to true in deepspeed config",
        key_of_activations(arguments, "contiguous_memory_optimization"),
        "leave it out, or write partition_activations: true beside it");
  }
}

void note_activations(const StrategyArguments& arguments,
                      std::vector<std::pair<std::string, std::string>>& found) {
  for (const char* name : of_activations) {
    const std::string key = key_of_activations(arguments, name);
    if (arguments.boolean(key, false)) {
      found.emplace_back(key, fmt::format("`{}` has no effect: deepspeed.checkpointing.checkpoint "
                                          "alone reads it, and modules are checkpointed by torch",
                                          name));
    }
  }
}

void check_second_partition(const TrainingPlan& plan, const DeepSpeedOptions& options) {
  const char* key = "config.zero_optimization.zero_hpz_partition_size";
  const int64_t ranks = std::min<int64_t>(options.second_partition_ranks, plan.world_size);
  if (options.stage != 3 || options.second_partition_ranks <= 1) {
    return;
  }
  if (options.offloads_parameters) {
    throw UnmodelledArgument(
        "`zero_hpz_partition_size` with parameters offloaded is not modelled: either is", key);
  }
  if (ranks > 0 && plan.world_size % ranks != 0) {
    throw RefusedArgument(
        fmt::format("AssertionError: {} is not divisible by {}", plan.world_size, ranks), key,
        "give the number of ranks in a node, or another divisor of all ranks");
  }
}

void check_combination(const TrainingPlan& plan, const DeepSpeedOptions& options,
                       bool is_configured) {
  if (options.stage < 0 || options.stage > 3) {
    throw RefusedArgument("DeepSpeedZeroConfig: the stage should be 0, 1, 2 or 3",
                          is_configured ? "config.zero_optimization.stage" : "stage",
                          "write 1 to divide the optimizer's state, 2 gradients too, 3 parameters "
                          "too, or 0 for none of them");
  }
  if (plan.optimizers.size() > 1 && plan.is_fitted) {
    throw RefusedArgument(
        "MisconfigurationException: DeepSpeed currently only supports single optimizer, single "
        "optional scheduler.",
        "", "train all parameters by one optimizer, or use ddp or fsdp");
  }
  check_second_partition(plan, options);
  // Up to 0.17.5 a BF16_Optimizer, which divides its state among ranks; the scale of releases after
  // it was fixed in 0.18.6 (pull requests 7515 and 7839 of DeepSpeed).
  constexpr Version first_of_bf16{0, 18, 6};
  if (options.stage == 0 && plan.activation_dtype == DType::bf16 && plan.is_fitted &&
      plan.deepspeed < first_of_bf16) {
    throw UnmodelledArgument("stage 0 in bf16 is not modelled for DeepSpeed before 0.18.6", "",
                             "use stage 1, 16-mixed, or a newer release");
  }
}

// What Lightning reads although there is a `config`.
constexpr std::array<std::string_view, 9> beside_config = {"config",
                                                           "loss_scale",
                                                           "initial_scale_power",
                                                           "loss_scale_window",
                                                           "hysteresis",
                                                           "min_loss_scale",
                                                           "logging_level",
                                                           "load_full_weights",
                                                           "exclude_frozen_parameters"};

bool differs_from_default(const StrategyArguments& arguments, const std::string& name) {
  const StrategyArgument* row = find_argument(deepspeed_arguments(), name);
  return arguments.has(name) && *arguments.find(name) != default_of(*row);
}

// stage_1_and_2.py asks only whether there is a device.
constexpr const char* not_to_the_drive =
    "`nvme` is `cpu` here: stage 3 alone offloads further than to host memory";

// comm.py, timed_op.
void note_comms_logger(const StrategyArguments& arguments,
                       std::vector<std::pair<std::string, std::string>>& found) {
  const std::string key = "config.comms_logger.enabled";
  if (arguments.has(key) && arguments.boolean(key, false)) {
    found.emplace_back(key,
                       "`comms_logger` makes the host wait for every collective, which times "
                       "here are without");
  }
}

// _load_config: with a `config` no other argument gets into it. DeepSpeed's engine passes what
// offloads on to the stages that have it alone.
std::vector<std::pair<std::string, std::string>> without_effect(
    const TrainingPlan& plan, const StrategyArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> found =
      idle_settings(plan, arguments, options_from(arguments));
  note_activations(arguments, found);
  if (has_deepspeed_configuration(arguments)) {
    for (const auto& [name, value] : arguments.all()) {
      if (!name.starts_with("config.") && std::ranges::count(beside_config, name) == 0) {
        found.emplace_back(
            name, fmt::format("`{}` has no effect beside `config`, whose keys alone count", name));
      }
    }
    if (has_unnamed_scheduler(arguments)) {
      found.emplace_back("config.scheduler",
                         "`scheduler` without a `type` has no effect: the engine makes none");
    }
    const DeepSpeedOptions options = deepspeed_configuration(arguments);
    const std::string zero = "config.zero_optimization.";
    if (options.offloads_parameters && options.stage != 3) {
      found.emplace_back(zero + "offload_param.device",
                         "`offload_param` has no effect: stage 3 alone offloads parameters");
    }
    if (options.offloads_optimizer && options.stage == 0) {
      found.emplace_back(zero + "offload_optimizer.device",
                         "`offload_optimizer` has no effect at stage 0");
    } else if (options.drive.optimizer && options.stage != 3) {
      found.emplace_back(zero + "offload_optimizer.device", not_to_the_drive);
    }
    note_comms_logger(arguments, found);
    return found;
  }
  const StrategyArgumentReader read(arguments, deepspeed_arguments());
  const DeepSpeedOptions options = from_arguments(arguments);
  if (options.offloads_parameters && options.stage != 3) {
    found.emplace_back("offload_parameters",
                       "`offload_parameters` has no effect: stage 3 alone offloads parameters");
  }
  if (options.offloads_optimizer && options.stage == 0) {
    found.emplace_back("offload_optimizer", "`offload_optimizer` has no effect at stage 0");
  } else if (options.drive.optimizer && options.stage != 3) {
    found.emplace_back("offload_optimizer_device", not_to_the_drive);
  }
  for (const auto& [device, offload] : {std::pair("offload_optimizer_device", "offload_optimizer"),
                                        std::pair("offload_params_device", "offload_parameters")}) {
    if (differs_from_default(arguments, device) && !read.boolean(offload)) {
      found.emplace_back(device, fmt::format("`{}` has no effect without `{}`", device, offload));
    }
  }
  if (differs_from_default(arguments, "thread_count")) {
    found.emplace_back("thread_count",
                       "`thread_count` has no effect: DeepSpeed reads `intra_op_parallelism` of "
                       "`aio` in its place");
  }
  return found;
}

ConfiguredObjects configured_objects(const StrategyArguments& arguments) {
  try {
    return deepspeed_objects(with_keys_of_today(arguments));
  } catch (const ArgumentProblem&) {  // `make` says so
    return {};
  }
}

// What Lightning makes of a name that offloads, as a configuration, which alone can say more.
StrategyArguments as_configuration(int64_t stage) {
  const StrategyArguments none;
  const StrategyArgumentReader defaults(none, deepspeed_arguments());
  const std::string zero = "config.zero_optimization.";
  StrategyArguments arguments;
  arguments.set("config.zero_allow_untested_optimizer", true);
  arguments.set("config.zero_force_ds_cpu_optimizer", false);
  arguments.set(zero + "stage", stage);
  arguments.set(zero + "overlap_comm", defaults.boolean("overlap_comm"));
  arguments.set(zero + "reduce_bucket_size", defaults.integer("reduce_bucket_size"));
  arguments.set(zero + "offload_optimizer.device", std::string("cpu"));
  if (stage == 3) {
    arguments.set(zero + "sub_group_size", defaults.integer("sub_group_size"));
    arguments.set(zero + "offload_param.device", std::string("cpu"));
  }
  return arguments;
}

std::vector<DividedState> ways_to_divide() {
  return {{"deepspeed_stage_1"},
          {"deepspeed_stage_2"},
          {"deepspeed_stage_3"},
          {.name = "deepspeed_stage_2_offload",
           .offloads = true,
           .with_any_optimizer = as_configuration(2)},
          {.name = "deepspeed_stage_3_offload",
           .offloads = true,
           .with_any_optimizer = as_configuration(3)}};
}

// What an optimizer takes norms of is one flat tensor, which host memory never has whole.
void check_optimizer(const TrainingPlan& plan, const DeepSpeedOptions& options) {
  const bool is_on_drive = options.stage == 3 && options.drive.optimizer;
  for (const OptimizerPlan& optimizer : plan.optimizers) {
    if (is_on_drive && !rule_of(optimizer.kind).is_elementwise()) {
      throw UnmodelledArgument(
          fmt::format("{} with an optimizer on NVMe is not modelled: it takes norms of tensors",
                      rule_of(optimizer.kind).name()),
          "", "use DeepSpeedCPUAdam, or offload_optimizer_device: cpu");
    }
  }
}

std::unique_ptr<Strategy> make(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const bool is_configured = has_deepspeed_configuration(arguments);
  if (arguments.has("config") && !is_configured) {
    throw ArgumentProblem("`config` of DeepSpeedStrategy is a map, or the path of a JSON file",
                          "config");
  }
  if (is_configured) {
    check_removed_keys(plan, arguments);
    check_later_keys(plan, arguments);
  }
  DeepSpeedOptions options = options_from(arguments);
  options.saves_frozen = !StrategyArgumentReader(arguments, deepspeed_arguments())
                              .boolean("exclude_frozen_parameters");
  if (is_configured) {
    check_deepspeed_types(plan, arguments);
    check_optimizer_section(plan, arguments);
    deepspeed_objects(with_keys_of_today(arguments));
  }
  check_combination(plan, options, is_configured);
  check_activations(arguments);
  check_deepspeed_assertions(plan, arguments, options);
  check_client_optimizer(plan, arguments, options);
  check_optimizer(plan, options);
  options.offloads_parameters = options.offloads_parameters && options.stage == 3;
  options.offloads_optimizer = options.offloads_optimizer && options.stage > 0;
  options.drive.optimizer = options.drive.optimizer && options.stage == 3;
  options.drive.parameters = options.drive.parameters && options.stage == 3;
  if (options.stage == 0 || (options.stage < 3 && !plan.is_fitted)) {
    return std::make_unique<DeepSpeedReplicated>(plan, options);
  }
  if (options.stage == 3) {
    return std::make_unique<DeepSpeedSharded>(plan, options);
  }
  return std::make_unique<DeepSpeedPartitioned>(plan, options);
}

}  // namespace

StrategyEntry deepspeed() {
  StrategyEntry entry;
  entry.name = "deepspeed";
  entry.class_name = "DeepSpeedStrategy";
  entry.divided = ways_to_divide();
  entry.takes_offloaded = may_update_offloaded;
  entry.traits = {.precisions = Precisions::no_double,
                  .needs_gpu = true,
                  .clips_by_value = false,
                  .manual_clipping = ManualClipping::ignored,
                  .statistics = StatisticsSharing::ignored,
                  .accumulates_itself = true,
                  .loss_scaling = LossScaling::of_strategy,
                  .has_host_optimizer = true,
                  .takes_tensor_norms = true,
                  .gathers_parameters = "deepspeed.zero.GatheredParameters"};
  entry.traits.world_is_data_parallel = true;
  entry.arguments = {deepspeed_arguments().begin(), deepspeed_arguments().end()};
  add_steps(deepspeed_sites::every_step, entry.sites);
  entry.make = make;
  entry.without_effect = without_effect;
  entry.gives_parts = [](const TrainingPlan&, const StrategyArguments& arguments) {
    return options_from(arguments).stage > 0;
  };
  entry.configured_objects = configured_objects;
  return entry;
}

}  // namespace lockstep
