#include "model/trainer/scheduler/schedulers.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/trainer/callback/monitor.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

Schedulers::Schedulers(Training& training)
    : training_(training), schedules_(training.program(), training.rates()) {}

void Schedulers::begin() {
  schedules_.begin();
  monitors_.clear();
  for (const SchedulerSettings& settings : training_.program().schedulers) {
    monitors_.push_back(settings.is_monitored() ? add_monitor(training_.log(), settings.name,
                                                              settings.monitor, settings.site)
                                                : 0);
  }
}

bool Schedulers::any(SchedulerInterval interval, bool monitored) const {
  return training_.program().trainer.automatic_optimization &&
         std::ranges::any_of(
             training_.program().schedulers, [&](const SchedulerSettings& settings) {
               return settings.interval == interval && settings.is_monitored() == monitored;
             });
}

Program Schedulers::step(SchedulerInterval interval, bool monitored) {
  if (!any(interval, monitored)) {
    co_return;
  }
  if (monitored && interval == SchedulerInterval::step) {
    co_await training_.publish_step_metrics();
  }
  const Progress& progress = training_.progress;
  const int64_t turns = interval == SchedulerInterval::step ? progress.batch_idx : progress.epoch;
  for (size_t index = 0; index < schedules_.size(); ++index) {
    const SchedulerSettings& settings = schedules_.settings(index);
    if (settings.is_monitored() != monitored || !settings.is_due(interval, turns + 1)) {
      continue;
    }
    const std::optional<double> metric = monitored ? monitored_value(settings) : std::nullopt;
    if (!monitored || metric) {
      co_await step_with_hook(index, metric);
    }
  }
}

std::optional<double> Schedulers::monitored_value(const SchedulerSettings& settings) const {
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
    step(index, metric, schedules_.settings(index).site);
  }
}

void Schedulers::step_by_program(std::optional<int64_t> number, std::optional<double> metric,
                                 SiteId site) {
  const auto count = static_cast<int64_t>(schedules_.size());
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
  step(static_cast<size_t>(index), metric ? metric : metric_of_hook_, site);
}

void Schedulers::step(size_t index, std::optional<double> metric, SiteId site) {
  const SchedulerSettings& settings = schedules_.settings(index);
  const double before = training_.rates().learning_rate(settings.optimizer);
  schedules_.step(index, metric, site);
  if (settings.is_monitored()) {
    const bool reduced = training_.rates().learning_rate(settings.optimizer) != before;
    training_.log().monitors[monitors_[index]].add(
        {training_.progress.epoch, training_.progress.global_step, *metric, reduced, reduced});
  }
}

}  // namespace lockstep
