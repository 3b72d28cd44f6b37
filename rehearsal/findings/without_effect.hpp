#pragma once

#include <vector>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Notes on what a scenario gives and a simulated run that came to its end never used: hooks,
/// loaders and limits of stages that did not run, metrics that no statement names.
std::vector<Problem> notes_on_unused(const OneRun& run);

}  // namespace lockstep::cli
