#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rehearsal/measure/steady_step.hpp"

namespace lockstep::cli {

/// How long a step takes on average where not every step exchanges the same: the mean over the
/// steps of one cycle (Strategy::steps_of_cycle), each the median of those at its place in the last
/// few cycles, so that a validation between two of them does not count. Of the steps with as many
/// samples as the steady one, where `samples` gives those of each mark. Nothing where the run has
/// no whole cycle behind its first step.
/// The numbers of these steps; empty: there is no such cycle.
std::vector<int64_t> steps_of_one_cycle(const StepSequence& sequence, const SteadyStep& steady,
                                        const std::vector<int64_t>& samples,
                                        int64_t steps_of_cycle);
std::optional<Time> mean_of_cycle(const StepSequence& sequence, const SteadyStep& steady,
                                  const std::vector<int64_t>& samples, int64_t steps_of_cycle);

}  // namespace lockstep::cli
