// The arguments of DDPStrategy, and its entry in the registry.
#include <string>

#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/data_parallel/ddp_arguments.hpp"
#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/first_weights.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/sharded/zero_redundancy_sites.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

// model_averaging/hierarchical_model_averager.py, and new_subgroups of distributed_c10d.py.
void check_levels(const TrainingPlan& plan, const AveragingOptions& averaging) {
  if (averaging.levels.empty() || plan.world_size == 0) {
    return;
  }
  for (const AveragingLevel& level : averaging.levels) {
    if (plan.world_size % level.group_size != 0) {
      throw RefusedArgument("ValueError: The world size must be divisible by 'group_size'",
                            "model_averager", "take sizes that divide the number of ranks");
    }
  }
  if (averaging.levels.back().group_size != plan.world_size) {
    throw RefusedArgument(
        "ValueError: The last value in arg ``period_process_group_dict`` must be equal to the size "
        "of arg ``process_group``.",
        "model_averager", "give the longest period the number of all ranks");
  }
}

// Lightning registers hooks on GPUs alone (strategies/ddp.py, _register_ddp_hooks), and averages
// models anywhere. Futures of NCCL call back at once, those of Gloo from its threads.
HookOptions hook_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
  HookOptions hook = hook_options_from(arguments);
  const bool shards = std::ranges::any_of(plan.optimizers, [](const OptimizerPlan& optimizer) {
    return optimizer.sharding != OptimizerPlan::Sharding::none;
  });
  if (hook.averaging.averages() && shards) {
    throw RefusedArgument(
        "ValueError: Currently model averaging cannot work with a distributed optimizer of type "
        "ZeroRedundancyOptimizer.",
        "ddp_comm_state", "use the optimizer that it holds");
  }
  check_levels(plan, hook.averaging);
  if (hook.averaging.outer && plan.optimizers.size() > 1) {
    throw UnmodelledArgument("`outer_optimizer` with several optimizers is not modelled",
                             "outer_optimizer", "train with one optimizer");
  }
  if (hook.kind != HookOptions::Kind::none && arguments.boolean("join", false)) {
    throw UnmodelledArgument("`join` with a communication hook is not modelled", "join",
                             "leave one of them out");
  }
  if (!plan.autocast_of_cuda) {
    hook.kind = HookOptions::Kind::none;
  }
  hook.power_sgd.takes_batches_alone = plan.orthogonalizes_batches_alone;
  hook.power_sgd.calls_back_in_threads = !plan.barrier_is_all_reduce;
  hook.power_sgd.writes_values = plan.numerics && !plan.valueless;
  return hook;
}

DataParallelOptions options_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const StrategyArgumentReader read(arguments, ddp_arguments());
  DataParallelOptions options{reducer_options_from(read)};
  options.hook = hook_from(plan, arguments);
  options.broadcast_buffers = read.boolean("broadcast_buffers");
  options.init_sync = read.boolean("init_sync");
  options.seeded_alike = arguments.boolean(std::string(seeded_alike_argument), false);
  options.join = read.boolean("join");
  options.divide_by_initial_world_size = read.boolean("divide_by_initial_world_size");
  options.throw_on_early_termination = read.boolean("throw_on_early_termination");
  return options;
}

}  // namespace

StrategyEntry distributed_data_parallel() {
  StrategyEntry entry;
  entry.name = "ddp";
  entry.class_name = "DDPStrategy";
  entry.traits.wraps_in_ddp = true;
  entry.traits.world_is_data_parallel = true;
  entry.traits.loss_scaling = LossScaling::of_trainer;
  entry.traits.holds_whole_state = true;
  entry.traits.takes_tensor_norms = true;
  entry.traits.statistics = StatisticsSharing::converts;
  entry.arguments = {ddp_arguments().begin(), ddp_arguments().end()};
  add_steps(ddp_sites::every_step, entry.sites);
  add_steps(hook_sites::every_step, entry.sites);
  add_steps(zero_redundancy_sites::every_step, entry.sites);
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<DistributedDataParallel>(plan, options_from(plan, arguments));
  };
  entry.without_effect = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return hooks_without_effect(arguments, plan.autocast_of_cuda);
  };
  return entry;
}

}  // namespace lockstep
