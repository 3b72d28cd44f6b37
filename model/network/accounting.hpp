#pragma once

#include "model/network/network.hpp"

namespace lockstep {

/// Follows every tensor through the finished network, as autograd would, and fills in what a layer
/// alone cannot know: which gradients are computed at all (nothing flows back beyond the first
/// trainable parameter), how many weights its kernels read, and which tensors are kept.
void account(Network& network);

}  // namespace lockstep
