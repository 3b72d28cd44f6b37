#pragma once

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The backward of all forwards that it goes through, layer after layer, where a strategy does
/// nothing in between.
void plain_backward(Rank& rank, Replica& replica, const StepOptions& options);

}  // namespace lockstep
