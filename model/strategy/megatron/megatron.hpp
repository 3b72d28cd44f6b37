#pragma once

#include "model/strategy/registry.hpp"

namespace lockstep {

/// "MegatronStrategy", of NeMo 2: Megatron-LM's tensor and pipeline parallelism with its own
/// data parallelism.
StrategyEntry megatron();

}  // namespace lockstep
