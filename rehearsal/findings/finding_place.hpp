#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Gives each finding its place in the scenario: the last statement or key that explains the
/// difference. A cause that is not among the finding's sites yet is added to them.
void place_findings(const OneRun& run, std::vector<Finding>& findings);

/// The key that decides which samples are taken by a rank: what a finding about samples is about.
/// None where the scenario leaves all of it to defaults.
SiteId place_of_samples(const OneRun& run, std::string_view stage);
/// The key that decides the order of the samples of training.
SiteId place_of_order(const OneRun& run);

}  // namespace lockstep::cli
