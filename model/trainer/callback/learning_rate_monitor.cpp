#include "model/trainer/callback/learning_rate_monitor.hpp"

#include <set>
#include <string>

#include "model/strategy/local_model/optimizer.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

bool LearningRateMonitor::acts_on(CallbackHook hook) const {
  using Interval = LearningRateMonitorSettings::Interval;
  return (hook == CallbackHook::train_batch_start && settings_.interval != Interval::epoch) ||
         (hook == CallbackHook::train_epoch_start && settings_.interval != Interval::step);
}

bool LearningRateMonitor::is_due(bool at_step) const {
  return !at_step || training_.logger_rows().are_due();
}

Program LearningRateMonitor::run(CallbackHook hook) {
  if (!is_due(hook == CallbackHook::train_batch_start)) {
    co_return;
  }
  const Rates row = rates_at(hook);
  for (const auto& [name, value] : row) {
    training_.log().metrics[name] = value;
  }
  training_.logger_rows().add_rates(row);
}

// Schedulers come first, each with its optimizer where it steps; optimizers without one come
// always. From the second of its class on an optimizer has a number.
Callback::Rates LearningRateMonitor::rates_at(CallbackHook hook) const {
  if (!acts_on(hook)) {
    return {};
  }
  const bool at_step = hook == CallbackHook::train_batch_start;
  const bool everywhere = settings_.interval != LearningRateMonitorSettings::Interval::by_scheduler;
  std::map<std::string, int> of_class;
  Rates row;
  std::set<size_t> told;
  for (const SchedulerSettings& scheduler : training_.program().schedulers) {
    const bool steps_here = (scheduler.interval == SchedulerInterval::step) == at_step;
    const std::string name = next_name(scheduler.optimizer, of_class);
    if (everywhere || steps_here) {
      tell(scheduler.optimizer, name, row);
    }
    told.insert(scheduler.optimizer);
  }
  for (size_t index = 0; index < training_.program().plan.optimizers.size(); ++index) {
    if (told.count(index) == 0) {
      tell(index, next_name(index, of_class), row);
    }
  }
  return row;
}

std::string LearningRateMonitor::next_name(size_t index,
                                           std::map<std::string, int>& of_class) const {
  const std::string name(class_name_of(training_.program().plan.optimizers[index]));
  const int earlier = of_class[name]++;
  return "lr-" + name + (earlier == 0 ? "" : "-" + std::to_string(earlier));
}

void LearningRateMonitor::tell(size_t index, const std::string& name, Rates& row) const {
  const OptimizerPlan& optimizer = training_.program().plan.optimizers[index];
  row[name] = training_.rates().learning_rate(index);
  if (settings_.log_momentum) {
    row[name + "-momentum"] = training_.rates().momentum(index);
  }
  if (settings_.log_weight_decay) {
    row[name + "-weight_decay"] = optimizer.weight_decay;
  }
}

}  // namespace lockstep
