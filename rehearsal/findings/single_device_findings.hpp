#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Compares the run with one device that saw the same samples (LS306). `otherwise`: that one once
/// more with other roundings, of which more are allowed for then; may be null.
std::vector<Finding> single_device_findings(const OneRun& run, const OneRun& single,
                                            const OneRun* otherwise = nullptr);

}  // namespace lockstep::cli
