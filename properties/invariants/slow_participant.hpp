#pragma once

#include <vector>

#include "model/program/run.hpp"
#include "properties/diagnosis/time_limits.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// In a run that ended no rank waited longer for the last member of a collective than the group's
/// timeout allows (LS402, a warning): nothing is wrong, yet a real job would be ended. One finding
/// a statement that the others wait at: its longest wait.
std::vector<Finding> no_slow_participant(const RunResult& run, const TimeLimits& limits);

}  // namespace lockstep
