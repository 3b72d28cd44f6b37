#pragma once

#include <string>

#include "model/core/dtype.hpp"
#include "model/strategy/arguments.hpp"

namespace lockstep {

/// The argument as a floating type: "bf16", "bfloat16", "torch.bfloat16". Throws ArgumentProblem
/// that names it.
DType dtype_argument(const StrategyArguments& arguments, const std::string& name);

}  // namespace lockstep
