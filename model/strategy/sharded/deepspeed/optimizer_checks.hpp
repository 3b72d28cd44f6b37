#pragma once

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"

namespace lockstep {

/// What the engine asserts of the optimizer that the module gives it. Throws RefusedArgument. One
/// that is assumed is nobody's choice, and none of the configuration's own comes here.
void check_client_optimizer(const TrainingPlan& plan, const StrategyArguments& arguments,
                            const DeepSpeedOptions& options);

/// A class of the configuration that this release has no more.
void check_optimizer_section(const TrainingPlan& plan, const StrategyArguments& arguments);
/// Whether the engine of this release lets a class update what is offloaded, without
/// `zero_force_ds_cpu_optimizer: false`.
bool may_update_offloaded(std::string_view optimizer, const Version& deepspeed);

}  // namespace lockstep
