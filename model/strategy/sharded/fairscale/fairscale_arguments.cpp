// DDPShardedStrategy's arguments, as Lightning 1.x hands them to FairScale's ShardedDataParallel.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "model/strategy/data_parallel/ddp_arguments.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fairscale/fairscale.hpp"
#include "model/strategy/sharded/fairscale/fairscale_sites.hpp"
#include "model/strategy/sharded/trainer_objects.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

constexpr ArgumentUse no_effect = ArgumentUse::no_effect;
constexpr const char* buffer_size = "reduce_buffer_size";
constexpr const char* averaging_period = "model_averaging_period";
constexpr std::string_view spawned_class = "DDPSpawnShardedStrategy";
constexpr const char* refresh = "auto_refresh_trainable";

constexpr const char* of_torch_alone =
    "of DistributedDataParallel: ShardedDataParallel has no such argument, and a fit raises";
constexpr const char* never_registered = "taken, and never registered by this class";

// pytorch_lightning/strategies/sharded.py up to 1.9, fairscale/nn/data_parallel/sharded_ddp.py.
constexpr std::array sharded_rows{
    StrategyArgument{"find_unused_parameters", "bool", "null", of_torch_alone},
    StrategyArgument{"static_graph", "bool", "null", of_torch_alone},
    StrategyArgument{"bucket_cap_mb", "float", "null", of_torch_alone},
    StrategyArgument{"gradient_as_bucket_view", "bool", "null", of_torch_alone},
    StrategyArgument{"check_reduction", "bool", "null", of_torch_alone},
    StrategyArgument{"broadcast_buffers", "bool", "true",
                     "rank 0's buffers are everybody's, before each forward"},
    StrategyArgument{"process_group", "", "null", "a group of torch that divides the optimizer",
                     ArgumentUse::unmodelled, "null: all ranks"},
    process_group_backend,
    process_group_timeout,
    trainer_objects[0],
    trainer_objects[1],
    trainer_objects[2],
    trainer_objects[3],
    trainer_objects[4],
    StrategyArgument{"ddp_comm_hook", "", "null", never_registered, no_effect},
    StrategyArgument{"ddp_comm_state", "", "null", never_registered, no_effect},
    StrategyArgument{"ddp_comm_wrapper", "", "null", never_registered, no_effect},
    StrategyArgument{averaging_period, "int", "null", never_registered, no_effect},
    StrategyArgument{buffer_size, "int", "null",
                     "elements of each owner's buffer for small gradients", ArgumentUse::strategy,
                     "null: 0 on one node, 8388608 on several"},
    StrategyArgument{"reduce_fp16", "bool", "false",
                     "gradients travel in fp16, where no buffer is used"},
    StrategyArgument{"sync_models_at_startup", "bool", "true",
                     "rank 0's parameters and buffers are everybody's at the beginning"},
    StrategyArgument{refresh, "bool", "true",
                     "looks in every forward for parameters that have been frozen or unfrozen"},
    StrategyArgument{"warn_on_trainable_params_changed", "bool", "true",
                     "warns where parameters have been frozen or unfrozen", no_effect},
    StrategyArgument{"wraps_without_fit", "bool", "false",
                     "the model is wrapped for a validation, too", ArgumentUse::by_name},
    StrategyArgument{"accumulates_under_no_sync", "bool", "true",
                     "accumulated micro-batches are not reduced", ArgumentUse::by_name},
    StrategyArgument{"broadcasts_fp16", "bool", "true",
                     "parameters travel in fp16 between nodes, under precision 16",
                     ArgumentUse::by_name},
};

constexpr const char* hook_arguments[] = {"ddp_comm_hook", "ddp_comm_state", "ddp_comm_wrapper",
                                          averaging_period};

// DDPStrategy keeps what it does not know in _ddp_kwargs, which _setup_model_and_optimizers gives
// to ShardedDataParallel: fairscale 0.4.0 to 0.4.13 have none of these. Lightning 1.4 wraps the
// model whatever the Trainer is called for (plugins/training_type/ddp.py, pre_dispatch).
void refuse_arguments_of_torch(const TrainingPlan& plan, const StrategyArguments& arguments,
                               std::string_view class_name) {
  const bool without_fit =
      StrategyArgumentReader(arguments, sharded_rows).boolean("wraps_without_fit");
  const std::vector<std::string> names = {"find_unused_parameters", "static_graph",
                                          "bucket_cap_mb",          "gradient_as_bucket_view",
                                          "check_reduction",        averaging_period};
  for (const std::string& name : names) {
    // The spawned class does not read the last one itself.
    const bool is_handed_on = name != averaging_period || class_name == spawned_class;
    if (is_handed_on && arguments.has(name) && (plan.is_fitted || without_fit)) {
      throw RefusedArgument(
          fmt::format(
              "TypeError: __init__() got an unexpected keyword argument '{}': {} hands it "
              "to FairScale's ShardedDataParallel, which has no such argument (0.4.0 to 0.4.13)",
              name, class_name),
          name, "leave it out: `strategy: ddp_sharded`, or `ddp_sharded_spawn`");
    }
  }
}

// Of several optimizers the others' parameters are frozen while one of them is toggled.
void check_refresh(const TrainingPlan& plan, bool refreshes) {
  if (!refreshes && plan.optimizers.size() > 1) {
    throw UnmodelledArgument(
        fmt::format("`{}: false` with several optimizers, which freeze each other's parameters, is "
                    "not modelled",
                    refresh),
        refresh, "leave it out");
  }
}

ShardedDataParallelOptions sharded_options_from(const TrainingPlan& plan,
                                                const StrategyArguments& arguments,
                                                std::string_view class_name) {
  const StrategyArgumentReader read(arguments, sharded_rows);
  refuse_arguments_of_torch(plan, arguments, class_name);
  check_refresh(plan, read.boolean(refresh));
  ShardedDataParallelOptions options;
  if (arguments.has(buffer_size)) {
    options.reduce_buffer_size = read.integer(buffer_size);
    if (*options.reduce_buffer_size < 0) {
      throw ArgumentProblem("strategy argument reduce_buffer_size must be at least 0", buffer_size);
    }
  }
  options.broadcast_buffers = read.boolean("broadcast_buffers");
  options.sync_models_at_startup = read.boolean("sync_models_at_startup");
  options.accumulates_under_no_sync = read.boolean("accumulates_under_no_sync");
  options.reduce_fp16 = read.boolean("reduce_fp16");
  const bool broadcasts_fp16 = read.boolean("broadcasts_fp16");
  if (plan.types().is_mixed() && plan.activation_dtype == DType::fp16) {
    options.clips_by_whole_norm = true;
    options.broadcast = broadcasts_fp16 ? ShardedDataParallelOptions::Broadcast::half_between_nodes
                                        : ShardedDataParallelOptions::Broadcast::as_stored;
  }
  return options;
}

// Gradients go to their owners whatever a hook would do with them.
std::vector<std::pair<std::string, std::string>> unregistered_hooks(
    const StrategyArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [name, value] : arguments.all()) {
    const std::string argument = name.substr(0, name.find('.'));
    if (std::ranges::count(hook_arguments, argument) == 0 || arguments.is_none(name) ||
        (!found.empty() && found.back().first == argument)) {
      continue;
    }
    found.emplace_back(
        argument,
        fmt::format("`{}` has no effect: Lightning registers hooks with torch's "
                    "DistributedDataParallel alone, and FairScale's ShardedDataParallel reduces "
                    "gradients as without it",
                    argument));
  }
  return found;
}

bool has_several_nodes(const TrainingPlan& plan) {
  return plan.node_ranks < 0 || (plan.node_ranks > 0 && plan.world_size > plan.node_ranks);
}

// ShardedDataParallel.__init__: "fp16 gradient reduction is not compatible with reduction buffers".
std::vector<std::pair<std::string, std::string>> without_effect(const TrainingPlan& plan,
                                                                const StrategyArguments& arguments,
                                                                int64_t usual_buffer) {
  std::vector<std::pair<std::string, std::string>> found = unregistered_hooks(arguments);
  const StrategyArgumentReader read(arguments, sharded_rows);
  const int64_t usual = has_several_nodes(plan) ? reduce_buffer_size_of_fairscale : usual_buffer;
  const int64_t buffer = arguments.has(buffer_size) ? read.integer(buffer_size) : usual;
  if (buffer > 0 && read.boolean("reduce_fp16")) {
    found.emplace_back("reduce_fp16",
                       fmt::format("`reduce_fp16` has no effect: FairScale turns it off where "
                                   "gradients share buffers (`{}`: {})",
                                   buffer_size, buffer));
  }
  return found;
}

}  // namespace

StrategyEntry sharded_data_parallel() {
  StrategyEntry entry;
  entry.name = "ddp_sharded";
  entry.class_name = "DDPShardedStrategy";
  entry.traits = {
      .loss_scaling = LossScaling::of_trainer, .takes_apex = false, .takes_tensor_norms = true};
  entry.traits.world_is_data_parallel = true;
  entry.arguments = {sharded_rows.begin(), sharded_rows.end()};
  add_steps(fairscale_sites::every_step, entry.sites);
  entry.without_effect = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return without_effect(plan, arguments, 0);
  };
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<ShardedDataParallel>(
        plan, sharded_options_from(plan, arguments, "DDPShardedStrategy"));
  };
  return entry;
}

// pytorch_lightning/strategies/sharded_spawn.py: it has no model averaging to hand to anything, and
// no _set_ddp_kwargs, so that small gradients share buffers on one node, too.
StrategyEntry spawned_sharded_data_parallel() {
  StrategyEntry entry = sharded_data_parallel();
  entry.name = "ddp_sharded_spawn";
  entry.class_name = spawned_class;
  for (StrategyArgument& row : entry.arguments) {
    if (row.name == buffer_size) {
      row = row.with_default("8388608");
    } else if (row.name == averaging_period) {
      row = {averaging_period, "int", "null", of_torch_alone};
    }
  }
  entry.arguments.push_back(start_method_of_spawn);
  entry.without_effect = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return without_effect(plan, arguments, reduce_buffer_size_of_fairscale);
  };
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    ShardedDataParallelOptions options = sharded_options_from(plan, arguments, spawned_class);
    options.reduce_buffer_size =
        options.reduce_buffer_size.value_or(reduce_buffer_size_of_fairscale);
    return std::make_unique<ShardedDataParallel>(plan, options);
  };
  return entry;
}

}  // namespace lockstep
