#include "model/trainer/scheduler/torch_schedule.hpp"

#include "model/core/failure.hpp"
#include "model/trainer/scheduler/combined_schedule.hpp"
#include "model/trainer/scheduler/cycle_schedule.hpp"
#include "model/trainer/scheduler/factor_schedule.hpp"
#include "model/trainer/scheduler/learning_rate_schedule.hpp"

namespace lockstep {

void TorchSchedule::begin(ParameterGroup& group) {
  is_initial_ = true;
  step(group);
  is_initial_ = false;
}

void TorchSchedule::step(ParameterGroup& group) {
  ++last_;
  group.rate = rate(group);
}

void TorchSchedule::restart(ParameterGroup& group) {
  last_ = 0;
  const std::optional<double> closed = closed_form();
  group.rate = closed ? *closed : rate(group);
}

void TorchSchedule::save(std::vector<double>& numbers) const {
  numbers.push_back(base_rate_);
  numbers.push_back(static_cast<double>(last_));
}

void TorchSchedule::restore(const std::vector<double>& numbers, size_t& next) {
  base_rate_ = numbers.at(next++);
  last_ = static_cast<int64_t>(numbers.at(next++));
}

void TorchSchedule::take_base(ParameterGroup& group) {
  if (!group.initial_rate) {
    group.initial_rate = group.rate;
  }
  base_rate_ = *group.initial_rate;
}

void TorchSchedule::raise(const std::string& what) const {
  throw ProgramException(settings_.site, settings_.name + ": " + what);
}

double TorchSchedule::quotient(double a, double b) const {
  if (b == 0) {
    raise("ZeroDivisionError: float division by zero");
  }
  return a / b;
}

std::unique_ptr<TorchSchedule> make_schedule(const SchedulerSettings& settings,
                                             ParameterGroup& group) {
  switch (settings.kind) {
    case SchedulerKind::one_cycle_lr: return std::make_unique<OneCycleSchedule>(settings, group);
    case SchedulerKind::cyclic: return std::make_unique<CyclicSchedule>(settings, group);
    case SchedulerKind::lambda:
    case SchedulerKind::multiplicative: return std::make_unique<FactorSchedule>(settings, group);
    case SchedulerKind::sequential: return std::make_unique<SequentialSchedule>(settings, group);
    case SchedulerKind::chained: return std::make_unique<ChainedSchedule>(settings, group);
    default: return std::make_unique<LearningRateSchedule>(settings, group);
  }
}

}  // namespace lockstep
