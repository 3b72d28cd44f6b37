#pragma once

#include <vector>

#include "cli/one_run.hpp"
#include "model/trainer/prepare.hpp"

namespace lockstep::cli {

/// Unmodelled features that ranks met, each once. If there is any, the result of the run says
/// nothing.
std::vector<Problem> not_modelled(const OneRun& run);

}  // namespace lockstep::cli
