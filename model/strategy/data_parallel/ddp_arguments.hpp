#pragma once

#include <vector>

#include "model/strategy/argument_table.hpp"

namespace lockstep {

/// Of DDPStrategy, which hands on to torch's DistributedDataParallel what it does not read itself.
ArgumentRows ddp_arguments();

/// Of DDPSpawnStrategy, up to Lightning 1.9.
std::vector<StrategyArgument> spawned_ddp_arguments();

/// Of DDP2Strategy, up to Lightning 1.6.
std::vector<StrategyArgument> ddp2_arguments();

inline constexpr StrategyArgument start_method_of_spawn{
    "start_method", "text", "spawn", "spawn or fork: how processes begin", ArgumentUse::trainer};

// How gradients are exchanged in another way than by averaging buckets.
inline constexpr StrategyArgument ddp_comm_hook{
    "ddp_comm_hook", "", "null", "a hook of torch that exchanges a bucket in place of all_reduce"};
inline constexpr StrategyArgument ddp_comm_state{
    "ddp_comm_state", "", "null", "arguments of PowerSGDState or PostLocalSGDState, as a map"};
inline constexpr StrategyArgument ddp_comm_wrapper{
    "ddp_comm_wrapper", "", "null", "fp16_compress_wrapper or bf16_compress_wrapper"};
inline constexpr StrategyArgument model_averaging_period{
    "model_averaging_period", "int", "null", "post-local SGD: steps between averages of the model"};

}  // namespace lockstep
