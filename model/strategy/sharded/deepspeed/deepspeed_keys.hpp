#pragma once

#include "model/strategy/arguments.hpp"

namespace lockstep {

/// Throws for a key of `config` that DeepSpeed does not have, or that is not modelled, or that
/// Lightning sets itself.
void check_deepspeed_keys(const StrategyArguments& arguments);

/// The arguments with the names that DeepSpeed's keys have today, where they have others beside, or
/// where they were replaced (deepspeed/runtime/zero/config.py).
StrategyArguments with_keys_of_today(const StrategyArguments& arguments);

}  // namespace lockstep
