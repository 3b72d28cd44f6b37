#pragma once

#include "rehearsal/elastic/elastic_results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// When the first rank was lost or raised; the end of the run where none did.
Time time_of_failure(const OneRun& run);
/// How long the attempt has trained until it had taken so many steps of the job: from the start of
/// the job's first attempt, of a later one from its first step on.
Time training_until(const OneRun& run, const AttemptResult& attempt, int64_t step);
/// The pauses in which rank 0 and those who wait for it write checkpoints; the time between the
/// ends of the last two, in optimizer steps; 0: there were less than two.
struct CheckpointPauses {
  Time longest{};
  int64_t count = 0;
  int64_t steps_between = 0;
};
CheckpointPauses checkpoint_pauses(const OneRun& run);

}  // namespace lockstep::cli
