#pragma once

#include "model/trainer/scheduler/torch_schedule.hpp"

namespace lockstep {

/// LambdaLR, whose factor is of the first rate, and MultiplicativeLR, whose is of the last one.
class FactorSchedule final : public TorchSchedule {
 public:
  FactorSchedule(const SchedulerSettings& settings, ParameterGroup& group);
  std::unique_ptr<TorchSchedule> copy() const override {
    return std::make_unique<FactorSchedule>(*this);
  }

 private:
  double rate(ParameterGroup& group) override;
  double factor() const;
};

}  // namespace lockstep
