#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

struct SteadyStep {
  Time begin{};  ///< as if nothing had been left out between the two
  Time end{};
  RowRange rows;
  bool steady = true;
  size_t index = 0;  ///< of the step
};

/// The step of median length among all but the first; of the only step, that one. Nothing without
/// steps. `begin` is the end of the step before. Where `samples` gives the samples of each step,
/// the median is of those that took the most: the end of an epoch may cut a batch or a window of
/// accumulation short.
std::optional<SteadyStep> steady_step(const std::vector<StepMark>& steps,
                                      std::span<const RepeatedRows> repeated,
                                      const std::vector<int64_t>& samples = {});

/// The step whose transfers stand for every step: of those of median length the one that is the
/// middle one in the order in which they were taken, whether a simulation left it out or not. Real
/// worlds take the middle one by position, since their lengths are never twice the same.
std::optional<size_t> counted_step(World world, const std::vector<StepMark>& steps,
                                   std::span<const RepeatedRows> repeated,
                                   const std::vector<int64_t>& samples = {});

}  // namespace lockstep::cli
