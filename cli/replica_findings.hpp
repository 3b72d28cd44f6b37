#pragma once

#include <vector>

#include "cli/one_run.hpp"
#include "properties/finding.hpp"

namespace lockstep::cli {

/// Replicas that differ after a run (LS305): by their values, or where there are none, by the
/// statements that changed them.
std::vector<Finding> replica_findings(const OneRun& run);

}  // namespace lockstep::cli
