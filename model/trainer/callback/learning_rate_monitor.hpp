#pragma once

#include "model/trainer/callback/callback.hpp"

namespace lockstep {

/// Lightning's LearningRateMonitor: puts this rank's learning rate into its callback_metrics, as
/// `lr-SGD`. No collective (lr_monitor.py).
class LearningRateMonitor final : public Callback {
 public:
  LearningRateMonitor(const LearningRateMonitorSettings& settings, Training& training)
      : settings_(settings), training_(training) {}

  bool acts_on(CallbackHook hook) const override;
  Program run(CallbackHook hook) override;

 private:
  bool is_due(CallbackHook hook) const;

  const LearningRateMonitorSettings& settings_;
  Training& training_;
};

}  // namespace lockstep
