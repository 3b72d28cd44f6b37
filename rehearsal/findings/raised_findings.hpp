#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Exceptions of ranks that none of the known findings explains.
std::vector<Finding> raised_findings(const OneRun& run, const std::vector<Finding>& known);

}  // namespace lockstep::cli
