#pragma once

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"

namespace lockstep {

/// What DeepSpeed's engine asserts of a configuration whose keys all exist. Throws RefusedArgument.
void check_deepspeed_assertions(const TrainingPlan& plan, const StrategyArguments& arguments,
                                const DeepSpeedOptions& options);
/// The types that it enables, against those of the Trainer's `precision`.
void check_deepspeed_types(const TrainingPlan& plan, const StrategyArguments& arguments);

}  // namespace lockstep
