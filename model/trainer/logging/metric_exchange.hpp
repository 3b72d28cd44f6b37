#pragma once

#include "model/metric/metric_object.hpp"
#include "model/strategy/strategy.hpp"
#include "model/user_program/interpreter.hpp"

namespace lockstep {

/// TorchMetrics' gather_all_tensors over the ranks of a strategy: a barrier; for all but scalars
/// an all_gather of the shape; an all_gather of the data, padded to the largest shape where shapes
/// differ (utilities/distributed.py).
class MetricExchange final : public StateExchange {
 public:
  /// Interpreter and strategy outlive the exchange; `trainers`: as in TrainerMembership.
  MetricExchange(Interpreter& interpreter, Strategy& strategy, int32_t trainers)
      : interpreter_(interpreter), strategy_(strategy), trainers_(trainers) {}

  Task<Gathered> gather(Tensor own, SiteId site) override;
  Value common_value(const Metric& metric, const std::vector<SharedValues>& gathered,
                     const std::function<Value()>& compute) override;
  EmptyList empty_list() const override;
  void check_host_memory(SiteId site) override;

  /// This, or null where there is only one trainer and nothing is exchanged.
  StateExchange* where_distributed() { return trainers_ > 1 ? this : nullptr; }

 private:
  Task<SharedValues> all_gather(Values own, SiteId site);

  Interpreter& interpreter_;
  Strategy& strategy_;
  int32_t trainers_;
};

}  // namespace lockstep
