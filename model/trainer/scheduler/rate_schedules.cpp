#include "model/trainer/scheduler/rate_schedules.hpp"

#include <type_traits>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/program/rank.hpp"
#include "model/strategy/local_model/optimizer.hpp"

namespace lockstep {

namespace {

constexpr auto numbers_of = []<class Schedule>(const Schedule& schedule) {
  if constexpr (std::is_same_v<Schedule, std::unique_ptr<TorchSchedule>>) {
    std::vector<double> numbers;
    schedule->save(numbers);
    return numbers;
  } else {
    return schedule.state();
  }
};

template <class Schedule>
void restore_from(const std::vector<double>& numbers, Schedule& schedule) {
  if constexpr (std::is_same_v<Schedule, std::unique_ptr<TorchSchedule>>) {
    size_t next = 0;
    schedule->restore(numbers, next);
  } else {
    schedule.restore(numbers);
  }
}

}  // namespace

RateSchedules::RateSchedules(const RateSchedules& other, OptimizerRates& rates)
    : program_(other.program_), rates_(rates), groups_(other.groups_) {
  for (const Schedule& schedule : other.schedules_) {
    const auto* const torch = std::get_if<std::unique_ptr<TorchSchedule>>(&schedule);
    if (torch != nullptr) {
      schedules_.emplace_back((*torch)->copy());
    } else if (const auto* const plateau = std::get_if<PlateauSchedule>(&schedule)) {
      schedules_.emplace_back(*plateau);
    } else {
      schedules_.emplace_back(std::get<IterationSchedule>(schedule));
    }
  }
}

void RateSchedules::begin() {
  schedules_.clear();
  groups_.clear();
  rates_.reset();
  for (const OptimizerPlan& plan : program_.plan.optimizers) {
    groups_.push_back({.momentum = first_momentum(plan)});
  }
  for (const SchedulerSettings& settings : program_.schedulers) {
    if (settings.is_monitored()) {
      schedules_.emplace_back(PlateauSchedule(settings));
    } else if (settings.counts_iterations()) {
      const IterationSchedule schedule(settings, rates_.learning_rate(settings.optimizer));
      take(settings, schedule, schedule.initial());
      schedules_.emplace_back(schedule);
    } else {
      const size_t optimizer = settings.optimizer;
      schedules_.emplace_back(make_schedule(settings, group_with_rate(optimizer)));
      take(optimizer);
    }
  }
}

ParameterGroup& RateSchedules::group_with_rate(size_t optimizer) {
  groups_[optimizer].rate = rates_.learning_rate(optimizer);
  groups_[optimizer].momentum = rates_.momentum(optimizer);
  return groups_[optimizer];
}

void RateSchedules::take(size_t optimizer) {
  const ParameterGroup& group = groups_[optimizer];
  rates_.set_learning_rate(optimizer, group.rate);
  if (group.momentum != rates_.momentum(optimizer)) {
    rates_.set_momentum(optimizer, {group.momentum});
  }
}

void RateSchedules::take(const SchedulerSettings& settings, const IterationSchedule& schedule,
                         double rate) {
  if (schedule.divides_by_zero()) {
    throw ProgramException(
        settings.site,
        settings.name + ": ZeroDivisionError: float division by zero " +
            (settings.kind == SchedulerKind::one_cycle ? "(cycle_first_step_size is 0)"
                                                       : "(total_num_steps is warmup_num_steps)"));
  }
  rates_.set_learning_rate(settings.optimizer, rate);
  const OptimizerPlan& optimizer = program_.plan.optimizers[settings.optimizer];
  if (const auto betas = schedule.betas(); betas && has_betas(optimizer)) {
    rates_.set_momentum(settings.optimizer, {betas->first, betas->second});
  }
}

void RateSchedules::step(size_t index, std::optional<double> metric, SiteId site) {
  const SchedulerSettings& settings = this->settings(index);
  if (auto* const torch = std::get_if<std::unique_ptr<TorchSchedule>>(&schedules_[index])) {
    (*torch)->step(group_with_rate(settings.optimizer));
    take(settings.optimizer);
    return;
  }
  if (auto* const schedule = std::get_if<IterationSchedule>(&schedules_[index])) {
    const double rate = schedule->step();
    take(settings, *schedule, rate);
    return;
  }
  if (!metric) {
    throw ProgramException(site, settings.name + ".step() is missing the argument `metrics`");
  }
  rates_.set_learning_rate(settings.optimizer,
                           std::get<PlateauSchedule>(schedules_[index])
                               .step(rates_.learning_rate(settings.optimizer), *metric));
}

void RateSchedules::step_after(int64_t batch, int64_t epoch, bool optimizer_steps,
                               bool is_last_batch) {
  const auto step_due = [&](SchedulerInterval interval, int64_t turn) {
    for (size_t index = 0; index < schedules_.size(); ++index) {
      const SchedulerSettings& of = settings(index);
      if (!of.is_monitored() && of.is_due(interval, turn)) {
        step(index, std::nullopt, of.site);
      }
    }
  };
  if (optimizer_steps) {
    step_due(SchedulerInterval::step, batch + 1);
  }
  if (is_last_batch) {
    step_due(SchedulerInterval::epoch, epoch + 1);
  }
}

std::vector<SavedObject> RateSchedules::state() const {
  std::vector<SavedObject> saved;
  for (const Schedule& schedule : schedules_) {
    saved.push_back({std::visit(numbers_of, schedule), {}});
  }
  for (const ParameterGroup& group : groups_) {
    saved.push_back({{group.initial_rate.value_or(-1), group.momentum, group.highest_rate,
                      group.lowest_rate, group.highest_momentum, group.lowest_momentum},
                     {}});
  }
  return saved;
}

void RateSchedules::restore(const std::vector<SavedObject>& saved) {
  ensure(saved.size() == schedules_.size() + groups_.size(), "a checkpoint of the same schedulers");
  for (size_t index = 0; index < groups_.size(); ++index) {
    const std::vector<double>& numbers = saved[schedules_.size() + index].numbers;
    groups_[index] = {.rate = rates_.learning_rate(index),
                      .initial_rate = numbers.at(0) < 0 ? std::nullopt : std::optional(numbers[0]),
                      .momentum = numbers.at(1),
                      .highest_rate = numbers.at(2),
                      .lowest_rate = numbers.at(3),
                      .highest_momentum = numbers.at(4),
                      .lowest_momentum = numbers.at(5)};
    take(index);
  }
  for (size_t index = 0; index < schedules_.size(); ++index) {
    std::visit([&](auto& schedule) { restore_from(saved[index].numbers, schedule); },
               schedules_[index]);
    if (const auto* const schedule = std::get_if<IterationSchedule>(&schedules_[index])) {
      take(settings(index), *schedule, rates_.learning_rate(settings(index).optimizer));
    }
  }
}

}  // namespace lockstep
