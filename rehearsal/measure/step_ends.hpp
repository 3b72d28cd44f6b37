#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// When the step of this number (from 0) ended, also where a simulation has left it out. Nothing:
/// so many were not taken.
std::optional<Time> end_of_step(std::span<const RepeatedRows> repeated,
                                const std::vector<StepMark>& steps, int64_t number);

/// How many were taken.
int64_t count_steps(const std::vector<StepMark>& steps);

}  // namespace lockstep::cli
