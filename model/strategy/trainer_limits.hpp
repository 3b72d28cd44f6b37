#pragma once

#include <string>

namespace lockstep {

/// What the Trainer may not ask for: why not, and what to do instead. Empty: it may.
struct TrainerLimit {
  std::string why_not{};
  std::string remedy{};
};
struct TrainerLimits {
  TrainerLimit accumulation{};      ///< accumulate_grad_batches
  TrainerLimit clipping_by_norm{};  ///< gradient_clip_val
  TrainerLimit manual{};            ///< automatic_optimization: false
};

}  // namespace lockstep
