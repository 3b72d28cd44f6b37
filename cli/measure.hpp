#pragma once

#include <vector>

#include "cli/one_run.hpp"
#include "cli/results.hpp"

namespace lockstep::cli {

/// One optimizer step of one rank, as its journal shows it.
struct StepMark {
  RowRange rows;  ///< of the main lane, from after the step before
  Time finish{};  ///< of its last optimizer kernel
};
/// A step is a run of optimizer kernels without a forward between them.
std::vector<StepMark> steps_of(const Journal& journal, int32_t rank);

/// The step of median length among all but the first; of the only step, that one. Nothing without
/// steps. `begin` is the end of the step before.
struct SteadyStep {
  Time begin{};
  Time end{};
  RowRange rows;
  bool steady = true;
};
std::optional<SteadyStep> steady_step(const std::vector<StepMark>& steps);

/// Where [begin, end) of this rank went.
Breakdown breakdown_of(const Journal& journal, int32_t rank, Time begin, Time end);

/// Everything that a run gives to expectations and reports.
Results measure(const OneRun& run);

}  // namespace lockstep::cli
