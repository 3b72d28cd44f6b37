#pragma once

#include <optional>
#include <vector>

#include "model/program/rank.hpp"
#include "model/trainer/scheduler/rate_schedules.hpp"

namespace lockstep {

class Training;

/// The schedulers of a fit on one rank, stepped as Lightning steps them
/// (training_epoch_loop.py, _update_learning_rates): those that monitor nothing after the batch,
/// the others once validation has given its values, each by this rank's own callback_metrics.
class Schedulers {
 public:
  explicit Schedulers(Training& training);

  /// Makes them again over the optimizer of the fit, which has its first rate again.
  void begin();
  /// `scheduler.step(metric)` of the program: of the scheduler with this number, else of that whose
  /// hook runs, else of the only one. `metric`: else that of the hook.
  void step_by_program(std::optional<int64_t> number, std::optional<double> metric, SiteId site);
  /// Lets those of this interval step, the monitored ones or the others.
  Program step(SchedulerInterval interval, bool monitored);
  bool any(SchedulerInterval interval, bool monitored) const;
  RateSchedules& schedules() { return schedules_; }
  const RateSchedules& schedules() const { return schedules_; }

 private:
  /// The value for a monitored scheduler; nothing if the key is missing.
  std::optional<double> monitored_value(const SchedulerSettings& settings) const;
  Program step_with_hook(size_t index, std::optional<double> metric);
  void step(size_t index, std::optional<double> metric, SiteId site);

  Training& training_;
  RateSchedules schedules_;
  std::vector<size_t> monitors_;          ///< by scheduler: index into the rank's, where it has one
  std::optional<size_t> in_hook_;         ///< the scheduler whose `lr_scheduler_step` runs
  std::optional<double> metric_of_hook_;  ///< what that was given
};

}  // namespace lockstep
