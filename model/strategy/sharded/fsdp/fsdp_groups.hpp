#pragma once

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"

namespace lockstep {

/// Reads `device_mesh` and `process_group`. Throws what torch raises for them.
void set_fsdp_groups(const TrainingPlan& plan, const StrategyArguments& arguments,
                     FullyShardedOptions& options);
/// The same groups of a different number of ranks.
ArgumentsOfSize fsdp_arguments_of_size(const StrategyArguments& arguments, int64_t ranks);

}  // namespace lockstep
