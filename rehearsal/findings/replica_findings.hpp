#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Replicas that differ after a run (LS305): by their values, or where there are none, by the
/// statements that changed them.
std::vector<Finding> replica_findings(const OneRun& run);

}  // namespace lockstep::cli
