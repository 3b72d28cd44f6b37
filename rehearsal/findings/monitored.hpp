#pragma once

#include <vector>

#include "properties/invariants/decisions_agree.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Decisions of callbacks and schedulers by metrics, over all ranks.
std::vector<MonitoredDecision> monitored_decisions(const OneRun& run);

/// A monitor with `strict: false` whose key no rank ever logged.
std::vector<Finding> idle_monitors(const OneRun& run);

/// Adds the findings of decisions that do not agree (LS109) to those of a run that came to its end.
/// One defect, one finding: what a rank-local metric (LS302, an error) or replicas that differ
/// (LS305) explain is reported there. May be called again once the findings have changed.
void tell_decisions(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
