#pragma once

#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::test {

/// Fails the property unless the prediction, what devices did over time, and the memory, transfers
/// and checkpoint of every rank are the same: what a simulation leaves out, of steps or ranks,
/// changes none of it.
void expect_same_results(const cli::OneRun& run, const cli::Results& results,
                         const cli::OneRun& of_all, const cli::Results& results_of_all);

}  // namespace lockstep::test
