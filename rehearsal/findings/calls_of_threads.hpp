#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Collectives that a strategy calls from host threads of its own, which nothing orders with those
/// of other threads (LS103). Threads of a scenario have statements of their own. In a real run the
/// order may differ by rank or not: what `findings` says of it is then part of this one finding.
void add_unordered_calls(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
