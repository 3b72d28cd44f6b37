#include "model/trainer/scheduler/schedulers.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/trainer/callback/monitor.hpp"
#include "model/trainer/loop/training.hpp"

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

void Schedulers::begin() {
  schedulers_.clear();
  const TrainingProgram& program = training_.program();
  groups_.clear();
  training_.rates().forget_momenta();
  for (size_t optimizer = 0; optimizer < program.plan.optimizers.size(); ++optimizer) {
    const OptimizerPlan& plan = program.plan.optimizers[optimizer];
    training_.rates().set_learning_rate(optimizer, plan.lr);
    groups_.push_back({.momentum = first_momentum(plan)});
  }
  for (const SchedulerSettings& settings : program.schedulers) {
    if (settings.is_monitored()) {
      const size_t log =
          add_monitor(training_.log(), settings.name, settings.monitor, settings.site);
      schedulers_.push_back({&settings, PlateauSchedule(settings), log});
    } else if (settings.counts_iterations()) {
      const IterationSchedule schedule(settings,
                                       training_.rates().learning_rate(settings.optimizer));
      take(settings, schedule, schedule.initial());
      schedulers_.push_back({&settings, schedule, 0});
    } else {
      const size_t optimizer = settings.optimizer;
      schedulers_.push_back({&settings, make_schedule(settings, group_with_rate(optimizer)), 0});
      take(optimizer);
    }
  }
}

ParameterGroup& Schedulers::group_with_rate(size_t optimizer) {
  groups_[optimizer].rate = training_.rates().learning_rate(optimizer);
  groups_[optimizer].momentum = training_.rates().momentum(optimizer);
  return groups_[optimizer];
}

void Schedulers::take(size_t optimizer) {
  const ParameterGroup& group = groups_[optimizer];
  training_.rates().set_learning_rate(optimizer, group.rate);
  if (group.momentum != training_.rates().momentum(optimizer)) {
    training_.rates().set_momentum(optimizer, {group.momentum});
  }
}

void Schedulers::take(const SchedulerSettings& settings, const IterationSchedule& schedule,
                      double rate) {
  if (schedule.divides_by_zero()) {
    throw ProgramException(
        settings.site,
        settings.name + ": ZeroDivisionError: float division by zero " +
            (settings.kind == SchedulerKind::one_cycle ? "(cycle_first_step_size is 0)"
                                                       : "(total_num_steps is warmup_num_steps)"));
  }
  training_.rates().set_learning_rate(settings.optimizer, rate);
  const OptimizerPlan& optimizer = training_.program().plan.optimizers[settings.optimizer];
  if (const auto betas = schedule.betas(); betas && has_betas(optimizer)) {
    training_.rates().set_momentum(settings.optimizer, {betas->first, betas->second});
  }
}

std::vector<SavedObject> Schedulers::state() const {
  std::vector<SavedObject> saved;
  for (const Scheduler& scheduler : schedulers_) {
    saved.push_back({std::visit(numbers_of, scheduler.schedule), {}});
  }
  for (const ParameterGroup& group : groups_) {
    saved.push_back({{group.initial_rate.value_or(-1), group.momentum, group.highest_rate,
                      group.lowest_rate, group.highest_momentum, group.lowest_momentum},
                     {}});
  }
  return saved;
}

void Schedulers::restore(const std::vector<SavedObject>& saved) {
  ensure(saved.size() == schedulers_.size() + groups_.size(),
         "a checkpoint of the same schedulers");
  for (size_t index = 0; index < groups_.size(); ++index) {
    const std::vector<double>& numbers = saved[schedulers_.size() + index].numbers;
    groups_[index] = {.rate = training_.rates().learning_rate(index),
                      .initial_rate = numbers.at(0) < 0 ? std::nullopt : std::optional(numbers[0]),
                      .momentum = numbers.at(1),
                      .highest_rate = numbers.at(2),
                      .lowest_rate = numbers.at(3),
                      .highest_momentum = numbers.at(4),
                      .lowest_momentum = numbers.at(5)};
    take(index);
  }
  for (size_t index = 0; index < schedulers_.size(); ++index) {
    std::visit([&](auto& schedule) { restore_from(saved[index].numbers, schedule); },
               schedulers_[index].schedule);
    const SchedulerSettings& settings = *schedulers_[index].settings;
    if (const auto* schedule = std::get_if<IterationSchedule>(&schedulers_[index].schedule)) {
      take(settings, *schedule, training_.rates().learning_rate(settings.optimizer));
    }
  }
}

bool Schedulers::any(SchedulerInterval interval, bool monitored) const {
  return training_.program().trainer.automatic_optimization &&
         std::any_of(schedulers_.begin(), schedulers_.end(), [&](const Scheduler& scheduler) {
           return scheduler.settings->interval == interval &&
                  scheduler.settings->is_monitored() == monitored;
         });
}

bool Schedulers::is_due(const SchedulerSettings& settings, SchedulerInterval interval,
                        bool monitored) const {
  const Progress& progress = training_.progress;
  const int64_t turn =
      (interval == SchedulerInterval::step ? progress.batch_idx : progress.epoch) + 1;
  return settings.interval == interval && settings.is_monitored() == monitored &&
         turn % settings.frequency == 0;
}

Program Schedulers::step(SchedulerInterval interval, bool monitored) {
  if (!any(interval, monitored)) {
    co_return;
  }
  if (monitored && interval == SchedulerInterval::step) {
    co_await training_.publish_step_metrics();
  }
  for (size_t index = 0; index < schedulers_.size(); ++index) {
    const Scheduler& scheduler = schedulers_[index];
    if (!is_due(*scheduler.settings, interval, monitored)) {
      continue;
    }
    const std::optional<double> metric = monitored ? monitored_value(scheduler) : std::nullopt;
    if (!monitored || metric) {
      co_await step_with_hook(index, metric);
    }
  }
}

std::optional<double> Schedulers::monitored_value(const Scheduler& scheduler) const {
  const SchedulerSettings& settings = *scheduler.settings;
  const std::map<std::string, double>& metrics = training_.log().metrics;
  const auto found = metrics.find(settings.monitor);
  if (found != metrics.end()) {
    return found->second;
  }
  if (settings.strict) {
    raise_missing_monitor(training_, settings.name, settings.monitor, settings.site);
  }
  return std::nullopt;
}

// The hook `lr_scheduler_step` takes the place of the step.
Program Schedulers::step_with_hook(size_t index, std::optional<double> metric) {
  Frame frame;
  if (metric) {
    frame["metric"] = Variable{Value(*metric)};
  }
  in_hook_ = index;
  metric_of_hook_ = metric;
  co_await training_.hooks().run_with("lr_scheduler_step", frame);
  training_.hooks().leave("lr_scheduler_step", frame);
  in_hook_.reset();
  metric_of_hook_.reset();
  if (!training_.hooks().has("lr_scheduler_step")) {
    step(schedulers_[index], metric, schedulers_[index].settings->site);
  }
}

void Schedulers::step_by_program(std::optional<int64_t> number, std::optional<double> metric,
                                 SiteId site) {
  const auto count = static_cast<int64_t>(schedulers_.size());
  if (!number && !in_hook_ && count != 1) {
    throw ProgramException(site, fmt::format("lr_scheduler_step: there are {} schedulers, and "
                                             "this does not say which one is meant",
                                             count));
  }
  const int64_t index = number ? *number : static_cast<int64_t>(in_hook_.value_or(0));
  if (index >= count) {
    throw ProgramException(
        site, fmt::format("lr_scheduler_step: there is no scheduler {} of {}", index, count));
  }
  step(schedulers_[static_cast<size_t>(index)], metric ? metric : metric_of_hook_, site);
}

void Schedulers::step(Scheduler& scheduler, std::optional<double> metric, SiteId site) {
  const SchedulerSettings& settings = *scheduler.settings;
  const double before = training_.rates().learning_rate(settings.optimizer);
  if (auto* schedule = std::get_if<std::unique_ptr<TorchSchedule>>(&scheduler.schedule)) {
    (*schedule)->step(group_with_rate(settings.optimizer));
    take(settings.optimizer);
    return;
  }
  if (auto* schedule = std::get_if<IterationSchedule>(&scheduler.schedule)) {
    const double rate = schedule->step();
    take(settings, *schedule, rate);
    return;
  }
  if (!metric) {
    throw ProgramException(site, settings.name + ".step() is missing the argument `metrics`");
  }
  const double after = std::get<PlateauSchedule>(scheduler.schedule).step(before, *metric);
  const bool reduced = after != before;
  training_.rates().set_learning_rate(settings.optimizer, after);
  training_.log().monitors[scheduler.log].add(
      {training_.progress.epoch, training_.progress.global_step, *metric, reduced, reduced});
}

}  // namespace lockstep
