#pragma once

#include <cstddef>
#include <optional>

#include "model/strategy/local_model/gradient_clipping.hpp"

namespace lockstep {

class LossScale;

/// What a scheduler has made of momentum, or of the first of Adam's betas and the second.
struct ScheduledMomentum {
  double first = 0;
  std::optional<double> second_beta{};
};

/// How one optimizer step is asked for.
struct UpdateOptions {
  size_t optimizer = 0;  ///< index into TrainingPlan::optimizers
  GradientClipping clipping{};
  std::optional<double> learning_rate{};        ///< a scheduler's; none: the plan's
  std::optional<ScheduledMomentum> momentum{};  ///< the same
  /// By which the trainer has multiplied the loss, under LossScaling::of_trainer;
  /// null: by nothing. The step notes whether gradients overflowed (scaled_step.hpp).
  LossScale* loss_scale = nullptr;
};

}  // namespace lockstep
