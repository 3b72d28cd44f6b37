#pragma once

#include <span>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// Counts how often each step was taken, and how long it then took since the end of the step before
/// it: a step that was left out may follow another one than the step that it repeats.
void count_lengths(std::span<const RepeatedRows> repeated, std::vector<StepMark>& steps);

}  // namespace lockstep::cli
