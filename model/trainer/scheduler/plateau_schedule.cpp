#include "model/trainer/scheduler/plateau_schedule.hpp"

#include <algorithm>
#include <limits>

namespace lockstep {

void PlateauSchedule::restore(const std::vector<double>& state) {
  best_ = state.at(0);
  bad_steps_ = static_cast<int64_t>(state.at(1));
  cooldown_ = static_cast<int64_t>(state.at(2));
}

PlateauSchedule::PlateauSchedule(const SchedulerSettings& settings)
    : settings_(settings),
      best_(settings.higher_is_better ? -std::numeric_limits<double>::infinity()
                                      : std::numeric_limits<double>::infinity()) {}

bool PlateauSchedule::is_better(double metric) const {
  const double threshold = settings_.threshold;
  if (settings_.higher_is_better) {
    return metric >
           (settings_.threshold_is_relative ? best_ * (threshold + 1.0) : best_ + threshold);
  }
  return metric < (settings_.threshold_is_relative ? best_ * (1.0 - threshold) : best_ - threshold);
}

double PlateauSchedule::step(double rate, double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= settings_.patience) {
    return rate;
  }
  cooldown_ = settings_.cooldown;
  bad_steps_ = 0;
  const double lower = std::max(rate * settings_.factor, settings_.least);
  return rate - lower > settings_.eps ? lower : rate;
}

}  // namespace lockstep
