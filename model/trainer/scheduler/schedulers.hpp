#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "model/program/rank.hpp"
#include "model/trainer/checkpoint/saved_training.hpp"
#include "model/trainer/scheduler/iteration_schedule.hpp"
#include "model/trainer/scheduler/plateau_schedule.hpp"
#include "model/trainer/scheduler/torch_schedule.hpp"

namespace lockstep {

class Training;

/// The schedulers of a fit on one rank, stepped as Lightning steps them
/// (training_epoch_loop.py, _update_learning_rates): those that monitor nothing after the batch,
/// the others once validation has given its values, each by this rank's own callback_metrics.
class Schedulers {
 public:
  explicit Schedulers(Training& training) : training_(training) {}

  /// Makes them again over the optimizer of the fit, which has its first rate again.
  void begin();
  /// `scheduler.step(metric)` of the program: of the scheduler with this number, else of that whose
  /// hook runs, else of the only one. `metric`: else that of the hook.
  void step_by_program(std::optional<int64_t> number, std::optional<double> metric, SiteId site);
  /// Lets those of this interval step, the monitored ones or the others.
  Program step(SchedulerInterval interval, bool monitored);
  bool any(SchedulerInterval interval, bool monitored) const;
  /// What a checkpoint holds of them, in their order, and of the optimizers' groups.
  std::vector<SavedObject> state() const;
  void restore(const std::vector<SavedObject>& saved);

 private:
  struct Scheduler {
    const SchedulerSettings* settings;
    std::variant<std::unique_ptr<TorchSchedule>, PlateauSchedule, IterationSchedule> schedule;
    size_t log = 0;  ///< index into the rank's monitors
  };
  void take(const SchedulerSettings& settings, const IterationSchedule& schedule, double rate);
  /// The optimizer takes what a scheduler has made of its group.
  void take(size_t optimizer);
  ParameterGroup& group_with_rate(size_t optimizer);
  bool is_due(const SchedulerSettings& settings, SchedulerInterval interval, bool monitored) const;
  /// The value for a monitored scheduler; nothing if the key is missing.
  std::optional<double> monitored_value(const Scheduler& scheduler) const;
  Program step_with_hook(size_t index, std::optional<double> metric);
  void step(Scheduler& scheduler, std::optional<double> metric, SiteId site);

  Training& training_;
  std::vector<Scheduler> schedulers_;
  std::vector<ParameterGroup> groups_;    ///< by optimizer
  std::optional<size_t> in_hook_;         ///< the scheduler whose `lr_scheduler_step` runs
  std::optional<double> metric_of_hook_;  ///< what that was given
};

}  // namespace lockstep
