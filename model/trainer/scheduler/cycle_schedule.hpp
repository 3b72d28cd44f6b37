#pragma once

#include <vector>

#include "model/trainer/scheduler/torch_schedule.hpp"

namespace lockstep {

/// OneCycleLR: up to the highest rate, down, and with momentum the other way round.
class OneCycleSchedule final : public TorchSchedule {
 public:
  OneCycleSchedule(const SchedulerSettings& settings, ParameterGroup& group);
  std::unique_ptr<TorchSchedule> copy() const override {
    return std::make_unique<OneCycleSchedule>(*this);
  }

 private:
  /// From one of the group's rates to another, until a step.
  struct Phase {
    double end = 0;
    double first_rate = 0;
    double last_rate = 0;
    double first_momentum = 0;
    double last_momentum = 0;
  };
  double rate(ParameterGroup& group) override;
  std::vector<Phase> phases_of(const ParameterGroup& group) const;
  double annealed(double first, double last, double part) const;
};

/// CyclicLR: up and down between two rates, forever.
class CyclicSchedule final : public TorchSchedule {
 public:
  CyclicSchedule(const SchedulerSettings& settings, ParameterGroup& group);
  std::unique_ptr<TorchSchedule> copy() const override {
    return std::make_unique<CyclicSchedule>(*this);
  }

 private:
  double rate(ParameterGroup& group) override;
  double scaled(double height, double cycle) const;
};

}  // namespace lockstep
