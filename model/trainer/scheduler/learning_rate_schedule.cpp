#include "model/trainer/scheduler/learning_rate_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {

using std::numbers::pi;

LearningRateSchedule::LearningRateSchedule(const SchedulerSettings& settings, ParameterGroup& group)
    : TorchSchedule(settings), period_(settings.period) {
  take_base(group);
  begin(group);
}

// CosineAnnealingWarmRestarts counts within its period, and its first step is none.
void LearningRateSchedule::step(ParameterGroup& group) {
  if (settings().kind == SchedulerKind::cosine_annealing_warm_restarts) {
    if (last_ < 0) {
      current_ = 0;
      period_ = settings().period;
    } else if (++current_ >= period_) {
      current_ %= period_;
      period_ *= settings().period_factor;
    }
  }
  TorchSchedule::step(group);
}

double LearningRateSchedule::rate(ParameterGroup& group) {
  const double last = group.rate;
  switch (settings().kind) {
    case SchedulerKind::step:
    case SchedulerKind::multi_step: return stepped(last);
    case SchedulerKind::constant: return constant(last);
    case SchedulerKind::linear: return linear(last);
    case SchedulerKind::exponential: return is_initial() ? last : last * settings().factor;
    case SchedulerKind::polynomial: return polynomial(last);
    case SchedulerKind::cosine_annealing: return is_initial() ? last : cosine(last);
    case SchedulerKind::cosine_annealing_warm_restarts: return warm_restarts();
    default: break;  // those that are not of this class
  }
  return last;
}

double LearningRateSchedule::stepped(double rate) const {
  const SchedulerSettings& of = settings();
  if (of.kind == SchedulerKind::step) {
    return last_ == 0 || last_ % of.period != 0 ? rate : rate * of.factor;
  }
  const auto count = std::count(of.milestones.begin(), of.milestones.end(), last_);
  return count == 0 ? rate : rate * std::pow(of.factor, static_cast<double>(count));
}

double LearningRateSchedule::constant(double rate) const {
  const double factor = settings().factor;
  if (last_ == 0) {
    return rate * factor;
  }
  return last_ == settings().period ? rate * quotient(1.0, factor) : rate;
}

double LearningRateSchedule::linear(double rate) const {
  const SchedulerSettings& of = settings();
  if (last_ == 0) {
    return rate * of.factor;
  }
  if (is_initial() || last_ > of.period) {
    return rate;
  }
  const double span = of.end_factor - of.factor;
  return rate * (1.0 + quotient(span, static_cast<double>(of.period) * of.factor +
                                          static_cast<double>(last_ - 1) * span));
}

double LearningRateSchedule::polynomial(double rate) const {
  if (is_initial() || last_ > settings().period) {
    return rate;
  }
  const auto period = static_cast<double>(settings().period);
  const double before = 1.0 - quotient(static_cast<double>(last_ - 1), period);
  const double decay = quotient(1.0 - static_cast<double>(last_) / period, before);
  return rate * std::pow(decay, settings().factor);
}

double LearningRateSchedule::cosine(double rate) const {
  const int64_t steps = settings().period;
  const auto period = static_cast<double>(steps);
  const double least = settings().least;
  if ((last_ - 1 - steps) % (2 * steps) == 0) {
    return rate + (base_rate_ - least) * (1 - std::cos(pi / period)) / 2;
  }
  return quotient(1 + std::cos(pi * static_cast<double>(last_) / period),
                  1 + std::cos(pi * static_cast<double>(last_ - 1) / period)) *
             (rate - least) +
         least;
}

double LearningRateSchedule::warm_restarts() const {
  const double least = settings().least;
  const double turned = pi * static_cast<double>(current_) / static_cast<double>(period_);
  return least + (base_rate_ - least) * (1 + std::cos(turned)) / 2;
}

// By which SequentialLR begins a scheduler: at its step 0.
std::optional<double> LearningRateSchedule::closed_form() const {
  const SchedulerSettings& of = settings();
  const double base = base_rate_;
  switch (of.kind) {
    case SchedulerKind::step:
    case SchedulerKind::exponential: return base * 1.0;
    case SchedulerKind::multi_step: {
      const auto passed = std::count_if(of.milestones.begin(), of.milestones.end(),
                                        [](int64_t milestone) { return milestone <= 0; });
      return base * std::pow(of.factor, static_cast<double>(passed));
    }
    case SchedulerKind::constant:
      return base * (of.factor + (of.period <= 0 ? 1.0 : 0.0) * (1 - of.factor));
    case SchedulerKind::linear:
      return base * (of.factor +
                     quotient((of.end_factor - of.factor) * 0, static_cast<double>(of.period)));
    case SchedulerKind::polynomial:
      return base * std::pow(1.0 - quotient(0, static_cast<double>(of.period)), of.factor);
    case SchedulerKind::cosine_annealing:
      return of.least + (base - of.least) * (1 + std::cos(0.0)) / 2;
    default: return std::nullopt;
  }
}

void LearningRateSchedule::save(std::vector<double>& numbers) const {
  TorchSchedule::save(numbers);
  numbers.push_back(static_cast<double>(current_));
  numbers.push_back(static_cast<double>(period_));
}

void LearningRateSchedule::restore(const std::vector<double>& numbers, size_t& next) {
  TorchSchedule::restore(numbers, next);
  current_ = static_cast<int64_t>(numbers.at(next++));
  period_ = static_cast<int64_t>(numbers.at(next++));
}

}  // namespace lockstep
