#include "model/trainer/callback/early_stopping.hpp"

#include <cmath>
#include <limits>

#include "model/trainer/callback/monitor.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

StoppingCriteria::StoppingCriteria(const EarlyStoppingSettings& settings)
    : settings_(settings),
      best_score_(settings.mode == MonitorMode::min ? std::numeric_limits<float>::infinity()
                                                    : -std::numeric_limits<float>::infinity()) {}

bool StoppingCriteria::is_better(float value, float than) const {
  return settings_.mode == MonitorMode::min ? value < than : value > than;
}

bool StoppingCriteria::stops(double monitored) {
  const auto current = static_cast<float>(monitored);
  if (settings_.check_finite && !std::isfinite(current)) {
    return true;
  }
  if (settings_.stopping_threshold &&
      is_better(current, static_cast<float>(*settings_.stopping_threshold))) {
    return true;
  }
  if (settings_.divergence_threshold &&
      is_better(-current, -static_cast<float>(*settings_.divergence_threshold))) {
    return true;
  }
  const double sign = settings_.mode == MonitorMode::max ? 1 : -1;
  if (is_better(current - static_cast<float>(sign * settings_.min_delta), best_score_)) {
    best_score_ = current;
    wait_count_ = 0;
    return false;
  }
  ++wait_count_;
  return wait_count_ >= settings_.patience;
}

EarlyStopping::EarlyStopping(const EarlyStoppingSettings& settings, Training& training)
    : settings_(settings),
      training_(training),
      criteria_(settings),
      log_(add_monitor(training.log(), "EarlyStopping", settings.monitor, settings.site)) {}

// Validation that runs in every epoch as a whole is over when the epoch is.
bool EarlyStopping::acts_on(CallbackHook hook) const {
  const TrainerSettings& trainer = training_.program().trainer;
  if (trainer.fast_dev_run) {
    return false;
  }
  const bool at_epoch_end = settings_.check_on_train_epoch_end.value_or(
      trainer.validates_whole_epochs() && trainer.check_val_every_n_epoch == 1);
  return hook == (at_epoch_end ? CallbackHook::train_epoch_end : CallbackHook::validation_end);
}

Program EarlyStopping::run(CallbackHook) {
  const std::map<std::string, double>& metrics = training_.log().metrics;
  const auto found = metrics.find(settings_.monitor);
  if (found == metrics.end()) {
    if (settings_.strict) {
      raise_missing_monitor(training_, "EarlyStopping", settings_.monitor, settings_.site);
    }
    co_return;
  }
  const double value = found->second;
  const bool own = criteria_.stops(value);
  const bool any_is_enough = training_.program().trainer.lightning >= Version{1, 9, 0};
  const bool stops =
      co_await training_.collectives().reduce_boolean_decision(own, !any_is_enough, settings_.site);
  training_.log().monitors[log_].add(
      {training_.progress.epoch, training_.progress.global_step, value, own, stops});
  if (stops) {
    training_.progress.should_stop = true;
    training_.log().stopped_epoch = training_.progress.epoch;
  }
}

}  // namespace lockstep
