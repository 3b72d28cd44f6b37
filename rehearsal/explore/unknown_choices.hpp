#pragma once

#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// The first `unknown` that ranks took otherwise in the same turn; none where all that came there
/// took it alike.
SiteId unknown_taken_apart(const OneRun& run);

/// "if rank 1 takes `unknown` at train.yaml:12 as true"; "" where none is taken as true.
std::string rank_choices(const OneRun& run, const Sites& sites);

}  // namespace lockstep::cli
