#pragma once

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Says in a finding of LS306 what the strategy is known to do otherwise than one device, and puts
/// what helps there in the place of the general advice.
void tell_known_differences(const OneRun& run, Finding& finding);

}  // namespace lockstep::cli
