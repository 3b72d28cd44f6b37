#pragma once

#include <vector>

#include "model/strategy/argument_table.hpp"

namespace lockstep {

/// Of DDPStrategy, which hands on to torch's DistributedDataParallel what it does not read itself.
ArgumentRows ddp_arguments();

/// Of DDPSpawnStrategy, up to Lightning 1.9.
std::vector<StrategyArgument> spawned_ddp_arguments();

inline constexpr StrategyArgument start_method_of_spawn{
    "start_method", "text", "spawn", "spawn or fork: how processes begin", ArgumentUse::trainer};

// How gradients are exchanged in another way than by averaging buckets.
inline constexpr StrategyArgument ddp_comm_hook{"ddp_comm_hook", "", "null",
                                                "exchanges a bucket in place of its all_reduce",
                                                ArgumentUse::unmodelled};
inline constexpr StrategyArgument ddp_comm_state{
    "ddp_comm_state", "", "null", "what `ddp_comm_hook` is called with", ArgumentUse::unmodelled};
inline constexpr StrategyArgument ddp_comm_wrapper{
    "ddp_comm_wrapper", "", "null", "wraps `ddp_comm_hook`", ArgumentUse::unmodelled};
inline constexpr StrategyArgument model_averaging_period{
    "model_averaging_period", "int", "null",
    "steps between averages of the model, under post-local SGD", ArgumentUse::unmodelled};

}  // namespace lockstep
