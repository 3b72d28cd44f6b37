#pragma once

#include <vector>

#include "rehearsal/jobs.hpp"

namespace lockstep::cli {

/// Simulates all cases once, in one order, and marks as left out those of which others have every
/// path (paths.hpp), unless the expectations of a case that runs name them; and those that no rank
/// program can run, where `request` asks for processes.
void leave_out_covered(std::vector<Job>& jobs, const RehearseRequest& request, int threads);

}  // namespace lockstep::cli
