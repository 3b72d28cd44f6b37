#pragma once

#include "rehearsal/results.hpp"

namespace lockstep::test {

/// Fails the property unless the prediction and the memory, transfers and checkpoint of every rank
/// are the same: what a simulation leaves out, of steps or ranks, changes none of it. `journal`:
/// that of `results`.
void expect_same_results(const cli::Results& results, const Journal& journal,
                         const cli::Results& of_all);

}  // namespace lockstep::test
