#pragma once

#include "rehearsal/measure/prober.hpp"

namespace lockstep::cli {

/// Looks for the largest batch size of data.train that fits, with the CUDA context and NCCL beside
/// it, until N fits and N + 1 does not.
void find_largest_batch(Prober& prober, Advice& advice);

}  // namespace lockstep::cli
