#pragma once

#include "rehearsal/run/one_run.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/long_training.hpp"

namespace lockstep::test {

/// Counts what a training has that was simulated with steps left out, and whether some were.
void count_case(const LongTraining& training, const cli::OneRun& run, Distribution& distribution);

}  // namespace lockstep::test
