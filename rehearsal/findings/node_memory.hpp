#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Ranks that need more host memory together than their node has, or more of its drive (LS401). One
/// finding of each for all nodes.
std::vector<Finding> node_memory_findings(const OneRun& run);

}  // namespace lockstep::cli
