#include "model/trainer/loop/optimizer_rates.hpp"

#include "model/strategy/local_model/optimizer.hpp"

namespace lockstep {

double OptimizerRates::learning_rate(size_t optimizer) const {
  const auto given = learning_rates_.find(optimizer);
  return given == learning_rates_.end() ? program_.plan.optimizers[optimizer].lr : given->second;
}

double OptimizerRates::momentum(size_t optimizer) const {
  const std::optional<ScheduledMomentum> given = scheduled_momentum(optimizer);
  return given ? given->first : first_momentum(program_.plan.optimizers[optimizer]);
}

std::optional<ScheduledMomentum> OptimizerRates::scheduled_momentum(size_t optimizer) const {
  const auto given = momenta_.find(optimizer);
  return given == momenta_.end() ? std::nullopt : std::optional(given->second);
}

void OptimizerRates::log(RankLog& log) const {
  if (program_.schedulers.empty()) {
    return;
  }
  log.learning_rates.resize(program_.plan.optimizers.size());
  for (size_t optimizer = 0; optimizer < log.learning_rates.size(); ++optimizer) {
    log.learning_rates[optimizer].push_back(learning_rate(optimizer));
  }
}

}  // namespace lockstep
