#pragma once

#include <map>

#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// The learning rates and momenta of one rank's optimizers, by their indices in the plan: those of
/// the plan until a scheduler gives others.
class OptimizerRates {
 public:
  /// The program outlives the rates.
  explicit OptimizerRates(const TrainingProgram& program) : program_(program) {}

  double learning_rate(size_t optimizer) const;
  void set_learning_rate(size_t optimizer, double rate) { learning_rates_[optimizer] = rate; }
  /// The optimizer's momentum, or its first beta.
  double momentum(size_t optimizer) const;
  void set_momentum(size_t optimizer, ScheduledMomentum momentum) {
    momenta_[optimizer] = momentum;
  }
  /// Nothing where no scheduler has given one.
  std::optional<ScheduledMomentum> scheduled_momentum(size_t optimizer) const;
  /// All are those of the plan again.
  void reset() {
    learning_rates_.clear();
    momenta_.clear();
  }
  /// Adds the learning rates to the log, where schedulers change them.
  void log(RankLog& log) const;

 private:
  const TrainingProgram& program_;
  std::map<size_t, double> learning_rates_;      ///< that schedulers gave
  std::map<size_t, ScheduledMomentum> momenta_;  ///< the same
};

}  // namespace lockstep
