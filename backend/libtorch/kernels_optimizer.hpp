#pragma once

#include "model/network/execute.hpp"

namespace lockstep::backend {

/// sgd_step and adam_step of model/core/kernel.hpp by torch::optim::SGD, Adam and AdamW themselves.
void execute_optimizer(const Op& op, Operands& operands);

}  // namespace lockstep::backend
