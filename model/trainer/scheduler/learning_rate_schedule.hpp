#pragma once

#include <cstdint>
#include <vector>

#include "model/trainer/scheduler/scheduler_settings.hpp"

namespace lockstep {

/// How one scheduler changes a learning rate (torch/optim/lr_scheduler.py). The rate is passed on
/// from step to step as torch's chainable form does, so that rounding is the same and several
/// schedulers may act on one optimizer. The settings outlive it.
class LearningRateSchedule {
 public:
  LearningRateSchedule(const SchedulerSettings& settings, double base_rate)
      : settings_(settings), base_rate_(base_rate) {}

  /// The rate once the scheduler has been made.
  double initial(double rate) const;
  /// The next step of a scheduler that monitors nothing.
  double step(double rate);
  /// What its state_dict holds, and load_state_dict takes.
  std::vector<double> state() const {
    return {base_rate_, static_cast<double>(last_), static_cast<double>(current_),
            static_cast<double>(period_)};
  }
  void restore(const std::vector<double>& state);

 private:
  double linear(double rate) const;
  double polynomial(double rate) const;
  double cosine(double rate) const;
  double warm_restarts();

  const SchedulerSettings& settings_;
  double base_rate_;
  int64_t last_ = 0;     ///< torch's last_epoch
  int64_t current_ = 0;  ///< of warm restarts: T_cur
  int64_t period_ = 0;   ///< T_i; 0: not begun
};

/// ReduceLROnPlateau.
class PlateauSchedule {
 public:
  explicit PlateauSchedule(const SchedulerSettings& settings);
  double step(double rate, double metric);
  /// As those of LearningRateSchedule.
  std::vector<double> state() const {
    return {best_, static_cast<double>(bad_steps_), static_cast<double>(cooldown_)};
  }
  void restore(const std::vector<double>& state);

 private:
  bool is_better(double metric) const;

  const SchedulerSettings& settings_;
  double best_;
  int64_t bad_steps_ = 0;
  int64_t cooldown_ = 0;
};

}  // namespace lockstep
