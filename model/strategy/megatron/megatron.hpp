#pragma once

#include "model/strategy/registry.hpp"

namespace lockstep {

/// "MegatronStrategy", of NeMo 2: Megatron-LM's tensor and pipeline parallelism with its own
/// data parallelism. The pipeline runs it (pipeline/pipeline_megatron.cpp).
StrategyEntry megatron();

}  // namespace lockstep
