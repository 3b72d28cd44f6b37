#pragma once

#include "rehearsal/measure/prober.hpp"

namespace lockstep::cli {

/// Where no batch fits: how much memory would be needed, and which strategies that divide or
/// offload the model's state fit.
void try_strategies(Prober& prober, Advice& advice);

}  // namespace lockstep::cli
