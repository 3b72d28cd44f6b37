#pragma once

#include <map>
#include <string>

#include "model/strategy/plan.hpp"
#include "model/trainer/callback/callback.hpp"

namespace lockstep {

/// Lightning's LearningRateMonitor: puts this rank's learning rates into its callback_metrics, as
/// `lr-SGD`, `lr-SGD-1`. No collective (lr_monitor.py).
class LearningRateMonitor final : public Callback {
 public:
  LearningRateMonitor(const LearningRateMonitorSettings& settings, Training& training)
      : settings_(settings), training_(training) {}

  bool acts_on(CallbackHook hook) const override;
  Program run(CallbackHook hook) override;
  Rates rates_at(CallbackHook hook) const override;

 private:
  bool is_due(bool at_step) const;
  std::string next_name(size_t index, std::map<std::string, int>& of_class) const;
  void tell(size_t index, const std::string& name, Rates& row) const;

  const LearningRateMonitorSettings& settings_;
  Training& training_;
};

}  // namespace lockstep
