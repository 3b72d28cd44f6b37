#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "model/trainer/checkpoint/saved_training.hpp"
#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/scheduler/iteration_schedule.hpp"
#include "model/trainer/scheduler/plateau_schedule.hpp"
#include "model/trainer/scheduler/torch_schedule.hpp"

namespace lockstep {

/// The schedules of a fit on one rank, which set the rates of its optimizers: arithmetic alone, so
/// that a copy over a copy of the rates says what steps will bring.
class RateSchedules {
 public:
  /// Until begin() there are none. Both outlive it.
  RateSchedules(const TrainingProgram& program, OptimizerRates& rates)
      : program_(program), rates_(rates) {}
  /// The same schedules over rates of their own, which outlive them.
  RateSchedules(const RateSchedules& other, OptimizerRates& rates);

  /// Makes them again over the optimizers, which have their first rates again. Raises
  /// ProgramException where torch or DeepSpeed would, as every step does.
  void begin();
  /// Lets this one step; `metric` is for those that monitor one, which raise without it.
  void step(size_t index, std::optional<double> metric, SiteId site);
  /// Lets those step that Lightning's loop steps behind a training batch, but for those that
  /// monitor a metric. `batch`, `epoch`: from 0 on.
  void step_after(int64_t batch, int64_t epoch, bool optimizer_steps, bool is_last_batch);

  size_t size() const { return schedules_.size(); }
  const SchedulerSettings& settings(size_t index) const { return program_.schedulers[index]; }
  /// What a checkpoint holds of them, in their order, and of the optimizers' groups.
  std::vector<SavedObject> state() const;
  void restore(const std::vector<SavedObject>& saved);

 private:
  using Schedule = std::variant<std::unique_ptr<TorchSchedule>, PlateauSchedule, IterationSchedule>;

  void take(const SchedulerSettings& settings, const IterationSchedule& schedule, double rate);
  /// The optimizer takes what a schedule has made of its group.
  void take(size_t optimizer);
  ParameterGroup& group_with_rate(size_t optimizer);

  const TrainingProgram& program_;
  OptimizerRates& rates_;
  std::vector<Schedule> schedules_;
  std::vector<ParameterGroup> groups_;  ///< by optimizer
};

}  // namespace lockstep
