#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// compress and decompress of model/core/kernel.hpp, in operations of ATen, so on any device: the
/// bytes are those of model/network/arithmetic/min_max_uint8.hpp. The host reads no value.
void execute_compression(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
