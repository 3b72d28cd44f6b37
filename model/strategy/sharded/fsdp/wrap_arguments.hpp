#pragma once

#include <string>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/network/network.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/layout/wrap_policy.hpp"

namespace lockstep {

/// The argument as a floating type: "bf16", "bfloat16", "torch.bfloat16". Throws
/// std::invalid_argument that names it.
DType dtype_argument(const StrategyArguments& arguments, const std::string& name);

/// A policy that wraps modules of these classes; `blocks` alone means whatever repeats.
WrapPolicy wrap_classes(const std::vector<std::string>& classes);

/// Throws std::invalid_argument, which begins with `name`, where the model has no module of a
/// class.
void check_classes(const WrapPolicy& policy, const Network& network, const std::string& name);

}  // namespace lockstep
