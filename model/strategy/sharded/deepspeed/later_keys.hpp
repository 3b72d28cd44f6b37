#pragma once

#include "model/strategy/registry.hpp"

namespace lockstep {

/// Keys that DeepSpeed has today, and an earlier release has not: its sections forbid what they do
/// not know. Throws RefusedArgument.
void check_later_keys(const TrainingPlan& plan, const StrategyArguments& arguments);

}  // namespace lockstep
