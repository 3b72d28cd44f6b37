#pragma once

#include <cstdint>

#include "model/network/context_part.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"

namespace lockstep {

/// What each of `ranks` ranks computes that divide the positions of every sample (Megatron-LM's
/// context parallelism): all layers of its positions, with whole parameters or those that `network`
/// has cut already; the core of attention meets the positions of the others by `exchange`.
CutNetwork cut_by_positions(const Network& network, int32_t ranks, ContextExchange exchange);

}  // namespace lockstep
