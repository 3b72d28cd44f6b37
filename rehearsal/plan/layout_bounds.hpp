#pragma once

#include "rehearsal/plan/layouts.hpp"

namespace lockstep::cli {

/// A rank may hold and send its parameters and gradients in two bytes, whatever the optimizer
/// updates.
inline constexpr int64_t least_parameter_bytes = 2;

/// No simulation of the layout gives a shorter step: kernels of a rank, exchanges of activations
/// that nothing hides, and the bubble; or the parameters that come from other nodes in each
/// forward, where these take longer. 0: nothing is known.
Time least_time_of(const LayoutTask& task, const Layout& layout);

/// No simulation of the layout takes less memory: its model states, and the activations of the
/// micro-batches that a rank keeps at once.
Bytes least_memory_of(const LayoutTask& task, const Layout& layout);

/// Layout::simulated_blocks.
int64_t simulated_blocks(const LayoutTask& task, const Layout& layout);

}  // namespace lockstep::cli
