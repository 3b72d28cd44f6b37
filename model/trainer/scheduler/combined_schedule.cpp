#include "model/trainer/scheduler/combined_schedule.hpp"

#include <algorithm>

namespace lockstep {

CombinedSchedule::CombinedSchedule(const SchedulerSettings& settings, ParameterGroup& group)
    : TorchSchedule(settings) {
  for (const SchedulerSettings& one : settings.schedulers) {
    schedules_.push_back(make_schedule(one, group));
  }
}

CombinedSchedule::CombinedSchedule(const CombinedSchedule& other) : TorchSchedule(other) {
  for (const auto& schedule : other.schedules_) {
    schedules_.push_back(schedule->copy());
  }
}

// `_update_lr(0)` asks for a closed form or get_lr, and these classes have neither.
void CombinedSchedule::restart(ParameterGroup& group) { rate(group); }

double CombinedSchedule::rate(ParameterGroup& /*group*/) {
  raise(
      "NotImplementedError: SequentialLR begins a scheduler at its milestone by get_lr, which "
      "this class does not have");
}

void CombinedSchedule::undo() {
  for (const auto& schedule : schedules_) {
    schedule->undo();
  }
}

void CombinedSchedule::save(std::vector<double>& numbers) const {
  TorchSchedule::save(numbers);
  for (const auto& schedule : schedules_) {
    schedule->save(numbers);
  }
}

void CombinedSchedule::restore(const std::vector<double>& numbers, size_t& next) {
  TorchSchedule::restore(numbers, next);
  for (const auto& schedule : schedules_) {
    schedule->restore(numbers, next);
  }
}

SequentialSchedule::SequentialSchedule(const SchedulerSettings& settings, ParameterGroup& group)
    : CombinedSchedule(settings, group) {
  last_ = 0;
  group.rate = *group.initial_rate;
  undo();
  schedules_.front()->begin(group);
}

void SequentialSchedule::step(ParameterGroup& group) {
  ++last_;
  const std::vector<int64_t>& milestones = settings().milestones;
  const auto after = std::upper_bound(milestones.begin(), milestones.end(), last_);
  const auto index = static_cast<size_t>(after - milestones.begin());
  if (index > 0 && milestones[index - 1] == last_) {
    schedules_[index]->restart(group);
  } else {
    schedules_[index]->step(group);
  }
}

void ChainedSchedule::step(ParameterGroup& group) {
  for (const auto& schedule : schedules_) {
    schedule->step(group);
  }
}

}  // namespace lockstep
