#pragma once

#include "properties/rank_set.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Ranks that run no trainer: they hold the weights of a parameter server. Known before the run, so
/// also of a rank that was lost.
RankSet servers_of(const OneRun& run);

}  // namespace lockstep::cli
