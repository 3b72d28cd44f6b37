#pragma once

#include <vector>

#include "cli/one_run.hpp"
#include "model/trainer/prepare.hpp"

namespace lockstep::cli {

/// What ranks met that is not modelled, each once. Where there is any, what came of the run says
/// nothing.
std::vector<Problem> not_modelled(const OneRun& run);

}  // namespace lockstep::cli
