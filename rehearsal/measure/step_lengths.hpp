#pragma once

#include <span>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// Counts how often each step was taken, and how long it then took since the end of the step before
/// it: a step that was left out may follow another one than the step that it repeats.
void count_lengths(std::span<const RepeatedRows> repeated, std::vector<StepMark>& steps);

/// Of the steps `like` (indices in ascending order) that took so long, the one that was taken as
/// number `number` (from 0), each counted as often as it was taken.
size_t nth_step_of_length(std::span<const RepeatedRows> repeated,
                          const std::vector<StepMark>& steps, const std::vector<size_t>& like,
                          Time length, int64_t number);

}  // namespace lockstep::cli
