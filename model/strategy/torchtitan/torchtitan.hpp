#pragma once

#include "model/strategy/registry.hpp"

namespace lockstep {

/// TorchTitan: what its job configuration says of parallelism ([parallelism], and the types and
/// offload of [training]), which comes to PipelineStrategy, ModelParallelStrategy, ddp or one
/// device.
StrategyEntry torchtitan();

}  // namespace lockstep
