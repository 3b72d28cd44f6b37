#pragma once

#include "model/core/op.hpp"
#include "model/network/execute.hpp"

namespace lockstep {

/// The arithmetic of layer_forward, layer_backward, loss_forward and loss_backward; operands in the
/// order of model/core/kernel.hpp, the layer is Op::tag. Does nothing for a layer that has no
/// reference arithmetic, or where an operand carries no values.
void execute_layer(const Op& op, Operands& operands, const Network& network);

}  // namespace lockstep
