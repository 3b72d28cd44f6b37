#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// The steps of a run in the order in which they were taken, from the last one back, at most `most`
/// of them: each an index into `steps`, also where a simulation has left it out.
std::vector<size_t> steps_from_last(std::span<const RepeatedRows> repeated,
                                    const std::vector<StepMark>& steps, size_t most);

/// How long a step takes on average where not every step exchanges the same: the mean over the
/// steps of one cycle (Strategy::steps_of_cycle), each the median of those at its place in the last
/// few cycles, so that a validation between two of them does not count. Nothing where the run has
/// no whole cycle behind its first step.
std::optional<Time> mean_of_cycle(std::span<const RepeatedRows> repeated,
                                  const std::vector<StepMark>& steps,
                                  const std::vector<int64_t>& samples, int64_t steps_of_cycle);

}  // namespace lockstep::cli
