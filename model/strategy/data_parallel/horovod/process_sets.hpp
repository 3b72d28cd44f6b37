#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/arguments.hpp"

namespace lockstep {

/// Ranks that average gradients among themselves under `horovod`, each set ascending; empty: all
/// ranks do. Throws ArgumentProblem where `process_sets` is no list of lists of ranks.
std::vector<std::vector<int64_t>> process_sets_of(const StrategyArguments& arguments);

}  // namespace lockstep
