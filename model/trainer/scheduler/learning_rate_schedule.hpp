#pragma once

#include "model/trainer/scheduler/torch_schedule.hpp"

namespace lockstep {

/// Those of torch that compute a rate from the last one, as their chainable form does.
class LearningRateSchedule final : public TorchSchedule {
 public:
  LearningRateSchedule(const SchedulerSettings& settings, ParameterGroup& group);
  std::unique_ptr<TorchSchedule> copy() const override {
    return std::make_unique<LearningRateSchedule>(*this);
  }
  void step(ParameterGroup& group) override;
  void save(std::vector<double>& numbers) const override;
  void restore(const std::vector<double>& numbers, size_t& next) override;

 private:
  double rate(ParameterGroup& group) override;
  std::optional<double> closed_form() const override;
  double stepped(double rate) const;
  double constant(double rate) const;
  double linear(double rate) const;
  double polynomial(double rate) const;
  double cosine(double rate) const;
  double warm_restarts() const;

  int64_t current_ = 0;  ///< of warm restarts: T_cur
  int64_t period_ = 0;   ///< T_i
};

}  // namespace lockstep
