#pragma once

#include <utility>
#include <vector>

#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// A kernel that updates parameters, or clips gradients for it.
bool is_optimizer(const Row& row);

/// One optimizer step of one rank, as its journal shows it.
struct StepMark {
  RowRange rows;      ///< of the main lane, from after the step before
  Time finish{};      ///< of its last optimizer kernel; without one, of what was submitted last
  int64_t times = 1;  ///< that it was taken: with it stand those that a simulation left out
};
/// A step is a run of optimizer kernels without a forward between them. A rank that owns nothing
/// has no such kernels, and its step ends where the trainer has taken it; so does that of a stage
/// that updates by an earlier batch meanwhile.
std::vector<StepMark> steps_of(const Journal& journal, int32_t rank);

/// Everything that a run gives to expectations and reports.
Results measure(const OneRun& run);
/// The little that is read off rank 0 at once, of a run that was stopped: whoever stopped it waits.
PartialResults measure_so_far(const OneRun& run);

}  // namespace lockstep::cli
