#include "model/trainer/callback/learning_rate_monitor.hpp"

#include <string>

#include "model/trainer/training.hpp"

namespace lockstep {

namespace {

std::string class_name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return "SGD";
    case OptimizerKind::adam: return "Adam";
    case OptimizerKind::adamw: return "AdamW";
  }
  return "";
}

}  // namespace

bool LearningRateMonitor::acts_on(CallbackHook hook) const {
  using Interval = LearningRateMonitorSettings::Interval;
  return (hook == CallbackHook::train_batch_start && settings_.interval != Interval::epoch) ||
         (hook == CallbackHook::train_epoch_start && settings_.interval != Interval::step);
}

// Rates of optimizers without a scheduler are told in both places.
bool LearningRateMonitor::is_due(CallbackHook hook) const {
  const TrainerSettings& trainer = training_.program().trainer;
  const bool at_step = hook == CallbackHook::train_batch_start;
  const int64_t next = training_.progress.global_step + 1;
  if (at_step && next % trainer.log_every_n_steps != 0 && !training_.progress.should_stop) {
    return false;
  }
  const std::vector<SchedulerSettings>& schedulers = training_.program().schedulers;
  if (settings_.interval != LearningRateMonitorSettings::Interval::by_scheduler ||
      schedulers.empty()) {
    return true;
  }
  for (const SchedulerSettings& scheduler : schedulers) {
    if ((scheduler.interval == SchedulerInterval::step) == at_step) {
      return true;
    }
  }
  return false;
}

Program LearningRateMonitor::run(CallbackHook hook) {
  if (!is_due(hook)) {
    co_return;
  }
  const OptimizerPlan& optimizer = training_.program().plan.optimizers.front();
  const std::string name = "lr-" + class_name_of(optimizer.kind);
  std::map<std::string, double>& metrics = training_.log().metrics;
  metrics[name] = training_.learning_rate(0);
  if (settings_.log_momentum) {
    metrics[name + "-momentum"] =
        optimizer.kind == OptimizerKind::sgd ? optimizer.momentum : optimizer.beta1;
  }
  if (settings_.log_weight_decay) {
    metrics[name + "-weight_decay"] = optimizer.weight_decay;
  }
}

}  // namespace lockstep
