#pragma once

#include "model/strategy/known_difference.hpp"

namespace lockstep {

/// torch's clip_grad_norm_ where a rank has a part of the gradients only.
inline KnownDifference norm_of_own_part() {
  return {
      "gradients are clipped by torch's own function, so that each rank clips by the norm of "
      "the gradients that it owns, and not by that of all",
      "clip by value, which looks at each element alone, or do not clip"};
}

/// An optimizer that takes norms, where it is given what a rank holds as tensors of their own.
inline KnownDifference update_by_own_norms() {
  return {
      "the optimizer takes norms or means of tensors, and is given parts of tensors, or several "
      "that "
      "have become one: each rank scales its update by what it holds itself",
      "use an optimizer that looks at each element alone, as AdamW does, or a strategy whose "
      "optimizer has whole tensors (ddp, ZeroRedundancyOptimizer)"};
}

}  // namespace lockstep
