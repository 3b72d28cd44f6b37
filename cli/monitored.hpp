#pragma once

#include <vector>

#include "cli/one_run.hpp"
#include "properties/decisions_agree.hpp"

namespace lockstep::cli {

/// What callbacks and schedulers decided by metrics, over all ranks.
std::vector<MonitoredDecision> monitored_decisions(const OneRun& run);

/// What monitors a key that no rank ever logged, and was told not to mind (`strict: false`).
std::vector<Finding> idle_monitors(const OneRun& run);

/// Adds the findings of decisions that do not agree (LS109) to those of a run that came to its end.
/// One defect, one finding: what a rank-local metric (LS302, an error) or replicas that differ
/// (LS305) explain is told there. May be called again once the findings have changed.
void tell_decisions(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
