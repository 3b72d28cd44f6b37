#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Ranks that compute one replica together and were trained on different samples (LS305).
std::vector<Finding> samples_of_replica_findings(const OneRun& run);

}  // namespace lockstep::cli
