#include "model/trainer/scheduler/cycle_schedule.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace lockstep {

namespace {

/// Both begin with the highest momentum.
void take_momentum(const CycleSettings& of, ParameterGroup& group) {
  if (of.cycles_momentum) {
    group.momentum = group.highest_momentum = of.high_momentum;
    group.lowest_momentum = of.low_momentum;
  }
}

}  // namespace

OneCycleSchedule::OneCycleSchedule(const SchedulerSettings& settings, ParameterGroup& group)
    : TorchSchedule(settings) {
  const CycleSettings& of = settings.of_cycle;
  group.initial_rate = quotient(of.high, of.first_divisor);
  group.highest_rate = of.high;
  group.lowest_rate = quotient(*group.initial_rate, of.last_divisor);
  take_momentum(of, group);
  take_base(group);
  begin(group);
}

std::vector<OneCycleSchedule::Phase> OneCycleSchedule::phases_of(
    const ParameterGroup& group) const {
  const CycleSettings& of = settings().of_cycle;
  const auto steps = static_cast<double>(of.total_steps);
  const double first = *group.initial_rate;
  const double high = group.highest_momentum;
  const double low = group.lowest_momentum;
  std::vector<Phase> phases = {{of.first_part * steps - 1, first, group.highest_rate, high, low}};
  if (of.has_three_phases) {
    phases.push_back({2 * of.first_part * steps - 2, group.highest_rate, first, low, high});
    phases.push_back({steps - 1, first, group.lowest_rate, high, high});
  } else {
    phases.push_back({steps - 1, group.highest_rate, group.lowest_rate, low, high});
  }
  return phases;
}

double OneCycleSchedule::annealed(double first, double last, double part) const {
  if (settings().of_cycle.is_linear) {
    return (last - first) * part + first;
  }
  return last + (first - last) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
}

double OneCycleSchedule::rate(ParameterGroup& group) {
  const CycleSettings& of = settings().of_cycle;
  if (last_ > of.total_steps) {
    raise(
        fmt::format("ValueError: Tried to step {} times. The specified number of total steps is "
                    "{}",
                    last_, of.total_steps));
  }
  const std::vector<Phase> phases = phases_of(group);
  const auto step = static_cast<double>(last_);
  double begin = 0;
  size_t index = 0;
  for (; index + 1 < phases.size() && step > phases[index].end; ++index) {
    begin = phases[index].end;
  }
  const Phase& phase = phases[index];
  const double part = quotient(step - begin, phase.end - begin);
  if (of.cycles_momentum) {
    group.momentum = annealed(phase.first_momentum, phase.last_momentum, part);
  }
  return annealed(phase.first_rate, phase.last_rate, part);
}

// Its first step still has the group's first rate as its own lowest, which is another one where a
// scheduler was made before.
CyclicSchedule::CyclicSchedule(const SchedulerSettings& settings, ParameterGroup& group)
    : TorchSchedule(settings) {
  const CycleSettings& of = settings.of_cycle;
  group.rate = of.low;
  take_momentum(of, group);
  take_base(group);
  begin(group);
  base_rate_ = of.low;
}

double CyclicSchedule::scaled(double height, double cycle) const {
  const CycleSettings& of = settings().of_cycle;
  switch (of.mode) {
    case CycleSettings::Mode::triangular: return height * 1.0;
    case CycleSettings::Mode::triangular2: return height * (1 / std::pow(2.0, cycle - 1));
    case CycleSettings::Mode::exp_range:
      return height * std::pow(of.gamma, static_cast<double>(last_));
  }
  return height;
}

double CyclicSchedule::rate(ParameterGroup& group) {
  const CycleSettings& of = settings().of_cycle;
  const double total = of.steps_up + of.steps_down;
  const double up = quotient(of.steps_up, total);
  const double turns = quotient(static_cast<double>(last_), total);
  const double cycle = std::floor(1 + turns);
  const double x = 1.0 + turns - cycle;
  const double height = x <= up ? quotient(x, up) : quotient(x - 1, up - 1);
  if (of.cycles_momentum) {
    group.momentum =
        of.high_momentum - scaled((of.high_momentum - of.low_momentum) * height, cycle);
  }
  return base_rate_ + scaled((of.high - base_rate_) * height, cycle);
}

}  // namespace lockstep
