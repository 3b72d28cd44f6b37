#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "model/strategy/local_model/gradient_clipping.hpp"

namespace lockstep {

/// How one optimizer step is asked for.
struct UpdateOptions {
  size_t optimizer = 0;  ///< index into TrainingPlan::optimizers
  GradientClipping clipping{};
  std::optional<double> learning_rate{};             ///< a scheduler's; none: the plan's
  std::optional<std::pair<double, double>> betas{};  ///< the same, of Adam
};

}  // namespace lockstep
