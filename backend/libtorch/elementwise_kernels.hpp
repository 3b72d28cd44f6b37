#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// fill, copy, scale, add, average and cast of model/core/kernel.hpp. Integers are truncated
/// towards zero.
void execute_elementwise(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
