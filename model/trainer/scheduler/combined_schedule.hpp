#pragma once

#include <memory>
#include <vector>

#include "model/trainer/scheduler/torch_schedule.hpp"

namespace lockstep {

/// A scheduler that holds others.
class CombinedSchedule : public TorchSchedule {
 public:
  void restart(ParameterGroup& group) final;
  void undo() final;
  void save(std::vector<double>& numbers) const final;
  void restore(const std::vector<double>& numbers, size_t& next) final;

 protected:
  CombinedSchedule(const SchedulerSettings& settings, ParameterGroup& group);
  CombinedSchedule(const CombinedSchedule& other);
  std::vector<std::unique_ptr<TorchSchedule>> schedules_;

 private:
  double rate(ParameterGroup& group) final;
};

/// SequentialLR: one scheduler after the other. All are made first, each with its effect on the
/// rate, then undone, and the first begins again from the first rate.
class SequentialSchedule final : public CombinedSchedule {
 public:
  SequentialSchedule(const SchedulerSettings& settings, ParameterGroup& group);
  std::unique_ptr<TorchSchedule> copy() const override {
    return std::make_unique<SequentialSchedule>(*this);
  }
  void step(ParameterGroup& group) override;
};

/// ChainedScheduler: all of them, in every step.
class ChainedSchedule final : public CombinedSchedule {
 public:
  ChainedSchedule(const SchedulerSettings& settings, ParameterGroup& group)
      : CombinedSchedule(settings, group) {}
  std::unique_ptr<TorchSchedule> copy() const override {
    return std::make_unique<ChainedSchedule>(*this);
  }
  void step(ParameterGroup& group) override;
};

}  // namespace lockstep
