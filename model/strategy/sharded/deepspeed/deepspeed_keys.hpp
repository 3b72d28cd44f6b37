#pragma once

#include "model/strategy/arguments.hpp"

namespace lockstep {

/// Throws for a key of `config` that DeepSpeed does not have, or that is not modelled, or that
/// Lightning sets itself.
void check_deepspeed_keys(const StrategyArguments& arguments);

}  // namespace lockstep
