#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// A fault's place among those of the attempt, and a rank that it has struck.
using Struck = std::set<std::pair<int32_t, int32_t>>;

/// A process that is gone has left no report: the first of the faults that take it has struck.
Struck struck_faults(const OneRun& run);

}  // namespace lockstep::cli
