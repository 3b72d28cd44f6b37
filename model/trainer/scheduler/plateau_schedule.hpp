#pragma once

#include <cstdint>
#include <vector>

#include "model/trainer/scheduler/scheduler_settings.hpp"

namespace lockstep {

/// ReduceLROnPlateau.
class PlateauSchedule {
 public:
  explicit PlateauSchedule(const SchedulerSettings& settings);
  double step(double rate, double metric);
  /// What its state_dict holds, and load_state_dict takes.
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
