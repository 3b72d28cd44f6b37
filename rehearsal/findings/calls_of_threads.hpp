#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Collectives that a strategy calls from host threads of its own, which nothing orders with those
/// of other threads (LS103). Threads of a scenario have statements of their own.
std::vector<Finding> unordered_calls(const OneRun& run);

}  // namespace lockstep::cli
