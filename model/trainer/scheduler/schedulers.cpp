#include "model/trainer/scheduler/schedulers.hpp"

#include <algorithm>

#include "model/trainer/callback/monitor.hpp"
#include "model/trainer/training.hpp"

namespace lockstep {

void Schedulers::begin() {
  schedulers_.clear();
  const TrainingProgram& program = training_.program();
  for (size_t optimizer = 0; optimizer < program.plan.optimizers.size(); ++optimizer) {
    training_.set_learning_rate(optimizer, program.plan.optimizers[optimizer].lr);
  }
  for (const SchedulerSettings& settings : program.schedulers) {
    if (settings.is_monitored()) {
      const size_t log =
          add_monitor(training_.log(), settings.name, settings.monitor, settings.site);
      schedulers_.push_back({&settings, PlateauSchedule(settings), log});
    } else {
      const size_t optimizer = settings.optimizer;
      const LearningRateSchedule schedule(settings, program.plan.optimizers[optimizer].lr);
      training_.set_learning_rate(optimizer, schedule.initial(training_.learning_rate(optimizer)));
      schedulers_.push_back({&settings, schedule, 0});
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
  for (Scheduler& scheduler : schedulers_) {
    if (!is_due(*scheduler.settings, interval, monitored)) {
      continue;
    }
    if (monitored) {
      step_by_metric(scheduler);
    } else {
      const size_t optimizer = scheduler.settings->optimizer;
      const double rate = training_.learning_rate(optimizer);
      training_.set_learning_rate(optimizer,
                                  std::get<LearningRateSchedule>(scheduler.schedule).step(rate));
    }
  }
}

void Schedulers::step_by_metric(Scheduler& scheduler) {
  const SchedulerSettings& settings = *scheduler.settings;
  const std::map<std::string, double>& metrics = training_.log().metrics;
  const auto found = metrics.find(settings.monitor);
  if (found == metrics.end()) {
    if (settings.strict) {
      raise_missing_monitor(training_, settings.name, settings.monitor, settings.site);
    }
    return;
  }
  const double before = training_.learning_rate(settings.optimizer);
  const double after = std::get<PlateauSchedule>(scheduler.schedule).step(before, found->second);
  const bool reduced = after != before;
  training_.set_learning_rate(settings.optimizer, after);
  training_.log().monitors[scheduler.log].add(
      {training_.progress.epoch, training_.progress.global_step, found->second, reduced, reduced});
}

}  // namespace lockstep
