#pragma once

#include <vector>

#include "model/trainer/prepare/prepare.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Unmodelled features that ranks met, each once. If there is any, the result of the run says
/// nothing.
std::vector<Problem> not_modelled(const OneRun& run);

}  // namespace lockstep::cli
