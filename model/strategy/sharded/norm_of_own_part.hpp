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

}  // namespace lockstep
