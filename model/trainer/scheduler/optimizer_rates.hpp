#pragma once

#include <map>
#include <vector>

#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/update_options.hpp"

namespace lockstep {

/// Learning rates and momenta of a rank's optimizers, by their index in the plan: its own, until a
/// scheduler gives others.
class OptimizerRates {
 public:
  /// The plan outlives it.
  explicit OptimizerRates(const std::vector<OptimizerPlan>& optimizers)
      : optimizers_(&optimizers) {}

  double learning_rate(size_t optimizer) const {
    const auto given = learning_rates_.find(optimizer);
    return given == learning_rates_.end() ? (*optimizers_)[optimizer].lr : given->second;
  }
  /// The optimizer's momentum, or its first beta.
  double momentum(size_t optimizer) const {
    const ScheduledMomentum* given = scheduled_momentum(optimizer);
    return given == nullptr ? first_momentum((*optimizers_)[optimizer]) : given->first;
  }
  /// Null: no scheduler has given one.
  const ScheduledMomentum* scheduled_momentum(size_t optimizer) const {
    const auto given = momenta_.find(optimizer);
    return given == momenta_.end() ? nullptr : &given->second;
  }

  void set_learning_rate(size_t optimizer, double rate) { learning_rates_[optimizer] = rate; }
  void set_momentum(size_t optimizer, ScheduledMomentum momentum) {
    momenta_[optimizer] = momentum;
  }
  /// All have those of the plan again.
  void reset() {
    learning_rates_.clear();
    momenta_.clear();
  }

 private:
  const std::vector<OptimizerPlan>* optimizers_;
  std::map<size_t, double> learning_rates_;
  std::map<size_t, ScheduledMomentum> momenta_;
};

}  // namespace lockstep
