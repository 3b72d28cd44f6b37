#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// Steps of optimizers (model/core/kernel.hpp): those of SGD, Adam and AdamW by torch::optim's own
/// classes, all others by the calls of torch of which their updates consist.
void execute_optimizer(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
