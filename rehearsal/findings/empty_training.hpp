#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// A warning where a fit trained nothing, because the training loader has no batch on any rank.
/// Lightning says so in its log and continues.
std::vector<Finding> empty_training(const OneRun& run);

}  // namespace lockstep::cli
