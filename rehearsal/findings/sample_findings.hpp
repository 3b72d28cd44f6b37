#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// LS304 of a run that came to its end: samples that ranks evaluate twice or never, data that they
/// do not divide in training, an order that comes again.
std::vector<Finding> sample_findings(const OneRun& run);

}  // namespace lockstep::cli
