#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// squared_norm, clip_by_norm and clip_by_value of model/core/kernel.hpp. The host reads no value.
void execute_clipping(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
