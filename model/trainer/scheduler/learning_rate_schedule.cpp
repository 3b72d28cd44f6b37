#include "model/trainer/scheduler/learning_rate_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace lockstep {

using std::numbers::pi;

double LearningRateSchedule::initial(double rate) const {
  const bool scales =
      settings_.kind == SchedulerKind::constant || settings_.kind == SchedulerKind::linear;
  return scales ? rate * settings_.factor : rate;
}

double LearningRateSchedule::step(double rate) {
  ++last_;
  const int64_t period = settings_.period;
  switch (settings_.kind) {
    case SchedulerKind::step: return last_ % period == 0 ? rate * settings_.factor : rate;
    case SchedulerKind::multi_step: {
      const auto count =
          std::count(settings_.milestones.begin(), settings_.milestones.end(), last_);
      return count == 0 ? rate : rate * std::pow(settings_.factor, static_cast<double>(count));
    }
    case SchedulerKind::constant: return last_ == period ? rate * (1.0 / settings_.factor) : rate;
    case SchedulerKind::linear: return linear(rate);
    case SchedulerKind::exponential: return rate * settings_.factor;
    case SchedulerKind::polynomial: return polynomial(rate);
    case SchedulerKind::cosine_annealing: return cosine(rate);
    case SchedulerKind::cosine_annealing_warm_restarts: return warm_restarts();
    default: break;  // those that are not of this class
  }
  return rate;
}

double LearningRateSchedule::linear(double rate) const {
  if (last_ > settings_.period) {
    return rate;
  }
  const double span = settings_.end_factor - settings_.factor;
  return rate * (1.0 + span / (static_cast<double>(settings_.period) * settings_.factor +
                               static_cast<double>(last_ - 1) * span));
}

double LearningRateSchedule::polynomial(double rate) const {
  if (last_ > settings_.period) {
    return rate;
  }
  const auto period = static_cast<double>(settings_.period);
  const double decay =
      (1.0 - static_cast<double>(last_) / period) / (1.0 - static_cast<double>(last_ - 1) / period);
  return rate * std::pow(decay, settings_.factor);
}

double LearningRateSchedule::cosine(double rate) const {
  const auto period = static_cast<double>(settings_.period);
  const double least = settings_.least;
  if ((last_ - 1 - settings_.period) % (2 * settings_.period) == 0) {
    return rate + (base_rate_ - least) * (1 - std::cos(pi / period)) / 2;
  }
  return (1 + std::cos(pi * static_cast<double>(last_) / period)) /
             (1 + std::cos(pi * static_cast<double>(last_ - 1) / period)) * (rate - least) +
         least;
}

double LearningRateSchedule::warm_restarts() {
  period_ = period_ == 0 ? settings_.period : period_;
  if (++current_ >= period_) {
    current_ -= period_;
    period_ *= settings_.period_factor;
  }
  return settings_.least +
         (base_rate_ - settings_.least) *
             (1 + std::cos(pi * static_cast<double>(current_) / static_cast<double>(period_))) / 2;
}

void LearningRateSchedule::restore(const std::vector<double>& state) {
  base_rate_ = state.at(0);
  last_ = static_cast<int64_t>(state.at(1));
  current_ = static_cast<int64_t>(state.at(2));
  period_ = static_cast<int64_t>(state.at(3));
}

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
