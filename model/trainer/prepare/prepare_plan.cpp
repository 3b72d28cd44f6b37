// Precision, and rates of optimizers.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/prepare/prepare_optimizer.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

// The script multiplies its rate by the devices, or by their square root; Lightning's Horovod
// strategy multiplies by the ranks whatever the script does (strategies/horovod.py, setup).
void scale_learning_rate(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  LearningRate& rate = preparation.learning_rate;
  const Placement& placement = preparation.placement;
  const auto devices = placement.launch.is_uneven()
                           ? static_cast<double>(placement.launch.world_size())
                           : static_cast<double>(std::ssize(placement.devices) * placement.nodes);
  rate.place = optimizer.place;
  rate.base_rate = plan.lr;
  for (const ObjectArgument& argument : optimizer.arguments) {
    rate.told = rate.told || speaks_of_scaling(argument.name);
    const std::string* text = argument.value.get_if<std::string>();
    if (argument.name == "base_lr") {
      set_number(preparation, argument, rate.base_rate);
    } else if (argument.name == "base_batch_size" && argument.value.get_if<int64_t>() != nullptr) {
      rate.base_batch_size = *argument.value.get_if<int64_t>();
    } else if (argument.name == "scaling" && text != nullptr && *text != "none") {
      rate.script_scales = true;
      if (*text == "linear" || *text == "sqrt") {
        plan.lr *= *text == "linear" ? devices : std::sqrt(devices);
      } else {
        add_problem(preparation, Kind::invalid, argument.place,
                    fmt::format("`scaling` cannot be {}", *text), "write linear, sqrt or none");
      }
    }
  }
  if (placement.strategy.scales_learning_rate) {
    rate.told = rate.framework_scales = true;
    plan.lr *= devices;
  }
  if (rate.base_rate <= 0 || rate.base_batch_size.value_or(1) < 1) {
    rate.told = false;
  }
}

}  // namespace

// Lightning before 2.0 came with older ones.
Version deepspeed_release(const Scenario& scenario, const Version& lightning) {
  constexpr Version older{0, 8, 2};
  return version_asked(scenario, "deepspeed")
      .value_or(lightning < v2_0 ? older : TrainingPlan().deepspeed);
}

void prepare_plan(Preparation& preparation, TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  TrainingPlan& plan = program.plan;
  plan.seed = program.settings.seed;
  plan.synchronises_without_fit = program.trainer.lightning >= Version{2, 0, 2};
  const Version& torch = program.settings.torch;
  plan.orthogonalizes_batches_alone = torch >= Version{1, 12, 0};
  plan.counts_use_under_no_sync = torch < Version{1, 9, 0} || torch >= Version{2, 4, 0};
  plan.pipelines_scale_gradients = torch >= Version{2, 7, 0};
  plan.deepspeed = deepspeed_release(scenario, program.trainer.lightning);
  const Hook* const main = scenario.program ? scenario.program->find("main") : nullptr;
  plan.is_fitted = main == nullptr ||
                   find_reached_statement(*scenario.program, *main, StatementKind::fit) != nullptr;
  plan.accumulated_batches = program.trainer.accumulate_grad_batches;
  plan.barrier_is_all_reduce =
      !program.settings.gloo && preparation.placement.device == DeviceType::cuda;
  plan.parameter_dtype = preparation.placement.precision.parameters;
  plan.activation_dtype = preparation.placement.precision.activations;
  plan.autocast_of_cuda = !preparation.placement.cpu;
  plan.is_on_gpu = !preparation.placement.cpu;
  plan.has_streams = plan.is_on_gpu || torch >= Version{2, 7, 0};
  plan.takes_partly_frozen_units = torch >= Version{2, 1, 0};
  plan.synchronises_batch_norm =
      value_or(scenario.trainer->sync_batchnorm, false) &&
      preparation.placement.traits.statistics == StatisticsSharing::converts;
  plan.loss_of_whole_batch =
      asks_for_loss_of_whole_batch(scenario) && preparation.placement.traits.drives_all_devices();
  plan.names_optimizer = !scenario.optimizers.empty() && scenario.optimizers.front().place.line > 0;
  plan.optimizers.clear();
  for (const Object& optimizer : scenario.optimizers) {
    plan.optimizers.emplace_back().set_to_none = program.settings.torch >= Version{2, 0, 0};
    prepare_optimizer(preparation, optimizer, plan.optimizers.back());
    scale_learning_rate(preparation, optimizer, plan.optimizers.back());
  }
}

}  // namespace lockstep
