#pragma once

#include <cstddef>
#include <vector>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Indices into parameters() of the trainable ones of a layer, in the order in which autograd hands
/// their gradients over. A matrix product's bias comes before its weight, since autograd still has
/// the weight's gradient to transpose; norms and convolutions follow their definition.
std::vector<size_t> in_order_of_gradients(const Replica& replica, size_t layer);

}  // namespace lockstep
