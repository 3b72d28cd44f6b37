#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Ranks that need more host memory together than their node has (LS401). One finding for all
/// nodes.
std::vector<Finding> host_memory_findings(const OneRun& run);

}  // namespace lockstep::cli
