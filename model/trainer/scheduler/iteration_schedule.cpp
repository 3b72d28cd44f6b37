#include "model/trainer/scheduler/iteration_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {

namespace {

/// OneCycle's own second beta, whatever the optimizer's is.
constexpr double second_beta_of_cycle = 0.99;

double warmup_steps(const IterationSettings& settings) { return std::max(2.0, settings.warmup); }

}  // namespace

// Warm-ups have not begun before their first step: the optimizer's own first step takes the lowest
// rate, and WarmupCosineLR's takes 0.
double IterationSchedule::initial() const {
  return settings_.kind == SchedulerKind::warmup_cosine ? 0 : settings_.of_iterations.low;
}

double IterationSchedule::step() {
  ++last_;
  const IterationSettings& of = settings_.of_iterations;
  switch (settings_.kind) {
    case SchedulerKind::warmup:
    case SchedulerKind::warmup_decay: return of.low + (of.high - of.low) * warmed_gamma();
    case SchedulerKind::warmup_cosine: return base_rate_ * cosine_ratio();
    case SchedulerKind::one_cycle: return cycled();
    default: break;
  }
  const double interval = static_cast<double>(last_ + 1) / of.step_size;
  return of.low * (1 + of.step_rate * (of.in_stairs ? std::floor(interval) : interval));
}

// Of the way from the lowest rate to the highest.
double IterationSchedule::warm() const {
  const double steps = warmup_steps(settings_.of_iterations);
  return settings_.of_iterations.is_linear
             ? static_cast<double>(last_) / steps
             : 1.0 / std::log(steps) * std::log(static_cast<double>(last_ + 1));
}

double IterationSchedule::warmed_gamma() const {
  const IterationSettings& of = settings_.of_iterations;
  const auto last = static_cast<double>(last_);
  if (last < warmup_steps(of)) {
    return warm();
  }
  return settings_.kind == SchedulerKind::warmup
             ? 1.0
             : std::max(0.0, (of.total - last) / std::max(1.0, of.total - warmup_steps(of)));
}

double IterationSchedule::cosine_ratio() const {
  const IterationSettings& of = settings_.of_iterations;
  const double steps = warmup_steps(of);
  const auto last = static_cast<double>(last_);
  if (last < steps) {
    return of.low + warm() * (1.0 - of.low);
  }
  const double since = last - steps + 1;
  const double turned = (1 + std::cos(std::numbers::pi * since / (of.total - steps))) / 2;
  const double ratio = of.last_ratio + (1.0 - of.last_ratio) * turned;
  return std::max(0.0, ratio);
}

// WarmupCosineLR has no steps to decay over; OneCycle's first half has none, and a cycle ends.
bool IterationSchedule::divides_by_zero() const {
  const IterationSettings& of = settings_.of_iterations;
  const auto last = static_cast<double>(last_);
  if (settings_.kind == SchedulerKind::warmup_cosine) {
    return last >= warmup_steps(of) && of.total == warmup_steps(of);
  }
  return settings_.kind == SchedulerKind::one_cycle && of.first_size == 0 && last_ >= 0 &&
         last < cycle_size() && std::fmod(last + 1, cycle_size()) == 0;
}

double IterationSchedule::cycle_size() const {
  return settings_.of_iterations.first_size + settings_.of_iterations.second_size;
}

double IterationSchedule::cycle_scale() const {
  const double size = cycle_size();
  const double first = settings_.of_iterations.first_size / size;
  const double cycles = 1.0 + static_cast<double>(last_ + 1) / size;
  const double x = cycles - std::floor(cycles);
  return x <= first ? x / first : (x - 1) / (first - 1);
}

double IterationSchedule::cycled() const {
  const IterationSettings& of = settings_.of_iterations;
  const auto last = static_cast<double>(last_);
  if (last < cycle_size()) {
    return of.low + (of.high - of.low) * cycle_scale();
  }
  if (of.decay_size == 0 || of.decay_rate == 0) {
    return of.low;
  }
  return of.low / (1 + of.decay_rate * ((last - cycle_size() + 1) / of.decay_size));
}

std::optional<std::pair<double, double>> IterationSchedule::betas() const {
  const IterationSettings& of = settings_.of_iterations;
  if (settings_.kind != SchedulerKind::one_cycle || !of.cycles_momentum) {
    return std::nullopt;
  }
  const auto last = static_cast<double>(last_);
  double beta = of.high_momentum;
  if (last_ < 0) {
    beta = of.low_momentum;
  } else if (last < cycle_size()) {
    beta = of.high_momentum - (of.high_momentum - of.low_momentum) * cycle_scale();
  } else if (of.decay_size != 0 && of.momentum_decay_rate != 0) {
    beta *= 1 + of.momentum_decay_rate * ((last - cycle_size() + 1) / of.decay_size);
  }
  return std::pair(beta, second_beta_of_cycle);
}

void IterationSchedule::restore(const std::vector<double>& state) {
  base_rate_ = state.at(0);
  last_ = static_cast<int64_t>(state.at(1));
}

}  // namespace lockstep
