#pragma once

#include "model/network/network.hpp"

namespace lockstep {

/// The place of a network among several.
struct ModuleBorders {
  bool input_has_gradient = false;  ///< it is the output of another module
  bool output_is_input = false;     ///< of another module
};

/// Follows every tensor through the finished network, as autograd would, and fills in what a layer
/// alone cannot know: which gradients are computed at all (nothing flows back beyond the first
/// trainable parameter), how many weights its kernels read, and which tensors are kept.
void account(Network& network, const ModuleBorders& borders = {});

}  // namespace lockstep
