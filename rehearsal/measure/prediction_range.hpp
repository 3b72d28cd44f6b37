#pragma once

#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Fills the range of a prediction based on a calibration: the same run with all measured
/// times at the low and at the high end of what measurements differ by. `request` is that of the
/// run whose prediction this is. Without an end of its own where a run is given up.
void add_range(const Scenario& scenario, const RunRequest& request, Prediction& prediction);

}  // namespace lockstep::cli
