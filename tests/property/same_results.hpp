#pragma once

#include "rehearsal/results.hpp"

namespace lockstep::test {

/// Fails the property unless everything that is measured of a run is the same, for every rank: what
/// a simulation leaves out, of steps or ranks, changes none of it. `journal`: that of `results`.
void expect_same_results(const cli::Results& results, const Journal& journal,
                         const cli::Results& of_all);

}  // namespace lockstep::test
