#pragma once

#include "model/network/execute.hpp"

namespace lockstep::backend {

/// fill, copy, scale, add, average and cast of model/core/kernel.hpp. Integers are truncated
/// towards zero.
void execute_elementwise(const Op& op, Operands& operands);

}  // namespace lockstep::backend
