#include "model/trainer/scheduler/factor_schedule.hpp"

#include "model/expression/evaluation_error.hpp"

namespace lockstep {

FactorSchedule::FactorSchedule(const SchedulerSettings& settings, ParameterGroup& group)
    : TorchSchedule(settings) {
  take_base(group);
  begin(group);
}

double FactorSchedule::factor() const {
  try {
    return settings().rate_factor.at(last_);
  } catch (const EvaluationError& error) {
    raise(error.message());
  }
}

double FactorSchedule::rate(ParameterGroup& group) {
  if (settings().kind == SchedulerKind::lambda) {
    return base_rate_ * factor();
  }
  return is_initial() ? group.rate : group.rate * factor();
}

}  // namespace lockstep
