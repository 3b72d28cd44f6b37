#pragma once

#include <variant>
#include <vector>

#include "model/program/rank.hpp"
#include "model/trainer/scheduler/learning_rate_schedule.hpp"

namespace lockstep {

class Training;

/// The schedulers of a fit on one rank, stepped as Lightning steps them
/// (training_epoch_loop.py, _update_learning_rates): those that monitor nothing after the batch,
/// the others once validation has given its values, each by this rank's own callback_metrics.
class Schedulers {
 public:
  explicit Schedulers(Training& training) : training_(training) {}

  /// Makes them anew over the optimizer of the fit, which has its first rate again.
  void begin();
  /// Lets those of this interval step, the monitored ones or the others.
  Program step(SchedulerInterval interval, bool monitored);
  bool any(SchedulerInterval interval, bool monitored) const;

 private:
  struct Scheduler {
    const SchedulerSettings* settings;
    std::variant<LearningRateSchedule, PlateauSchedule> schedule;
    size_t log = 0;  ///< index into the rank's monitors
  };
  bool is_due(const SchedulerSettings& settings, SchedulerInterval interval, bool monitored) const;
  void step_by_metric(Scheduler& scheduler);

  Training& training_;
  std::vector<Scheduler> schedulers_;
};

}  // namespace lockstep
