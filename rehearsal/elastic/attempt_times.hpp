#pragma once

#include <optional>

#include "rehearsal/elastic/elastic_results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// When a fault of the run's scenario takes its ranks away, where it says a time; else nothing.
std::optional<Time> time_of_fault(const OneRun& run, int32_t number);
/// When the first rank was lost or raised; the end of the run where none did.
Time time_of_failure(const OneRun& run);
/// How long the attempt has trained until it had taken so many steps of the job: from the start of
/// the job's first attempt, of a later one from its first step on.
Time training_until(const OneRun& run, const AttemptResult& attempt, int64_t step);
/// The longest pause in which rank 0 writes checkpoints while the others wait; 0: it writes none.
Time checkpoint_pause(const OneRun& run);

}  // namespace lockstep::cli
