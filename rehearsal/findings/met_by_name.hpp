#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Ranks agree by name on what to do: under the strategy `horovod`, or in a program of their own.
bool goes_through_horovod(const OneRun& run);

/// Tensors that ranks hand over by name, and that some rank of a hung run never handed over: what
/// waits for them inside of the negotiation becomes one finding that names them, or, where the
/// hang has a cause in the program, a consequence of that.
void tell_tensors_met_by_name(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
