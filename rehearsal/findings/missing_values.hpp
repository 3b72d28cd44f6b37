#pragma once

#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What a training does not compute, why, and which findings are therefore not judged by values;
/// empty: everything is computed, or the program is bare.
std::string missing_values(const OneRun& run);

}  // namespace lockstep::cli
