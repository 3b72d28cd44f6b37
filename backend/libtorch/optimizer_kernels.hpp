#pragma once

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// sgd_step and adam_step of model/core/kernel.hpp by torch::optim::SGD, Adam and AdamW themselves.
void execute_optimizer(const Op& op, TensorOperands& operands);

}  // namespace lockstep::backend
