#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/site.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// Names of what hvd.broadcast_optimizer_state sends, which counts a key of the state wherever it
/// occurs: "momentum_buffer.1", "momentum_buffer.2". A rank that trains fewer parameters so gives
/// their names to other tensors, and lacks the last names (horovod/torch/functions.py).
class OptimizerStateNames {
 public:
  explicit OptimizerStateNames(const OptimizerPlan& plan) : plan_(&plan) {}

  /// Of the next parameter that is trained: its counters come first, then its tensors, of which
  /// there are so many.
  std::vector<std::string> next(size_t tensors);

 private:
  const OptimizerPlan* plan_;
  std::map<std::string_view, int64_t> occurrences_;
};

/// As Horovod knows it: "broadcast.momentum_buffer.1".
std::string broadcast_name(std::string_view name);
/// Where a rank hands it over.
SiteId broadcast_site(std::string_view name);

/// Everything that the optimizers of a plan may broadcast so, each name once.
std::vector<std::string> names_of_optimizer_states(const TrainingPlan& plan);

}  // namespace lockstep
