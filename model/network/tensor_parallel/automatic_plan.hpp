#pragma once

#include <cstdint>

#include "model/network/network.hpp"
#include "model/network/tensor_parallel/parallel_style.hpp"

namespace lockstep {

/// A plan for a transformer, as scripts write it by hand: attention by heads, feed-forwards by
/// their hidden features, embedding and last layer by the vocabulary, and, where every layer
/// between them allows it, norms on a part of the positions. Falls back to whole positions, and to
/// fewer modules where sizes do not divide. Empty: nothing of the network can be cut like that.
ParallelPlan automatic_plan(const Network& network, int32_t ranks);
/// What Megatron-LM cuts in a transformer, whether or not sizes divide: attention, feed-forwards,
/// embedding and output. `by_positions`: norms get a part of the positions.
ParallelPlan megatron_plan(const Network& network, bool by_positions);

}  // namespace lockstep
