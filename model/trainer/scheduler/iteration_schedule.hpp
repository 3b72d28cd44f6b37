#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/trainer/scheduler/scheduler_settings.hpp"

namespace lockstep {

/// A scheduler of DeepSpeed (deepspeed/runtime/lr_schedules.py). Unlike torch's it computes the
/// rate from the number of steps alone; OneCycle computes Adam's betas as well. The settings
/// outlive it.
class IterationSchedule {
 public:
  IterationSchedule(const SchedulerSettings& settings, double base_rate)
      : settings_(settings), base_rate_(base_rate) {}

  /// The rate once the scheduler has been made, which the first step of the optimizer takes.
  double initial() const;
  double step();
  /// Python raises where its arithmetic divides by 0.
  bool divides_by_zero() const;
  /// None: it leaves them alone.
  std::optional<std::pair<double, double>> betas() const;
  std::vector<double> state() const { return {base_rate_, static_cast<double>(last_)}; }
  void restore(const std::vector<double>& state);

 private:
  double warm() const;
  double warmed_gamma() const;
  double cosine_ratio() const;
  double cycle_size() const;
  double cycle_scale() const;
  double cycled() const;

  const SchedulerSettings& settings_;
  double base_rate_;
  int64_t last_ = -1;  ///< last_batch_iteration
};

}  // namespace lockstep
