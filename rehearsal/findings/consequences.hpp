#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// One defect is one finding: a value of one rank by which a scheduler changes rates (LS302) tells
/// the replicas that drift apart by it (LS305), which are no finding of their own then.
void fold_consequences(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
