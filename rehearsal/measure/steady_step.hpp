#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rehearsal/measure/step_sequence.hpp"

namespace lockstep::cli {

/// The step that stands for all: of median length among all but the first, and of those that took
/// as long the middle one in the order in which they were taken, whether a simulation left it out
/// or not. Of the only step, that one.
struct SteadyStep {
  int64_t number = 0;  ///< in the sequence
  size_t mark = 0;     ///< the simulated step that shows it
  Time begin{};        ///< the end of the step before
  Time end{};
  bool steady = true;  ///< false: there was one step only, counted from the start of the run
};

/// Nothing without steps. Where `samples` gives the samples of each mark, the median is of those
/// that took the most: the end of an epoch may cut a batch or a window of accumulation short.
std::optional<SteadyStep> steady_step(const StepSequence& sequence,
                                      const std::vector<int64_t>& samples = {});

/// A step that was simulated right behind the one before it and took as long, to be drawn as it
/// stands in the journal: the steady one where it is such a step. If there is one, also the step
/// behind it was, which the host may have begun meanwhile.
SteadyStep drawn_step(const SteadyStep& steady, const StepSequence& sequence,
                      const std::vector<int64_t>& samples);

/// The number of the step whose transfers stand for every step: the steady one. Real worlds take
/// the middle one by position, since their lengths are never twice the same.
std::optional<int64_t> counted_step(World world, const StepSequence& sequence,
                                    const std::vector<int64_t>& samples = {});

}  // namespace lockstep::cli
