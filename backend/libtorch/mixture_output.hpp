#pragma once

#include <ATen/core/Tensor.h>

#include "backend/libtorch/layer_output.hpp"
#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"
#include "model/network/network.hpp"

namespace lockstep::backend {

/// A mixture of experts, as `layer_output`. How many choices fell on each expert are added to the
/// first buffer, if there is one. Of equal probabilities the first counts as greater.
at::Tensor mixture_output(const Layer& layer, const LayerTensors& tensors);

/// Its load-balancing loss times its coefficient, with the graph to input and router; undefined for
/// other layers, and where the coefficient is 0.
at::Tensor auxiliary_loss(const Layer& layer, const LayerTensors& tensors);

/// What ranks compute of a mixture whose experts they divide (MixturePart), or of layers whose
/// positions they divide (AttentionPart): the reference arithmetic.
void execute_by_reference(const Op& op, TensorOperands& operands, const Network& network);

}  // namespace lockstep::backend
