#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// matrix_product and orthogonalize. In host memory by the reference arithmetic, so that each sum
/// has its order; on a GPU by LibTorch's operators.
void execute_low_rank(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
