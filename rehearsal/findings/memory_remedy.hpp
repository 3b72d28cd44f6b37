#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Where no smaller batch helps against LS401, lets its remedy name strategies that divide or
/// offload the model's state: those that were tried and fit, else all.
void complete_memory_remedies(const OneRun& run, const Advice& advice,
                              std::vector<Finding>& findings);

}  // namespace lockstep::cli
