#pragma once

#include "model/strategy/registry.hpp"

namespace lockstep {

/// Keys that a release of DeepSpeed has no more and refuses whatever they say, also where they
/// switch themselves off. Throws RefusedArgument.
void check_removed_keys(const TrainingPlan& plan, const StrategyArguments& arguments);

}  // namespace lockstep
