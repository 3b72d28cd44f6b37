#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// squared_norm, clip_by_norm and clip_by_value of model/core/kernel.hpp. The host reads no value.
void execute_clipping(const Op& op, TensorOperands& operands);
/// The kernel `unscale`. The host reads whether the elements are finite.
void execute_unscaling(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
