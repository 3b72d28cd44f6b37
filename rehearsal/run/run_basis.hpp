#pragma once

#include <string>
#include <vector>

#include "rehearsal/run/calibrated.hpp"
#include "rehearsal/run/machine.hpp"
#include "rehearsal/run/one_run.hpp"
#include "sim/build_costs.hpp"

namespace lockstep::cli {

/// What the times of a simulated run are based on: sentences.
std::vector<std::string> basis_of(const Machine& machine, const sim::Costs& costs);
/// Describes the measurements that the run used, if any, and what they lack.
void tell_calibration(OneRun& run, const NamedCalibration& named, const sim::Costs& costs);

}  // namespace lockstep::cli
