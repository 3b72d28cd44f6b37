#pragma once

#include <optional>
#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// User code of the training that does not do the same on every rank, so that one device, which is
/// one rank, cannot repeat it.
struct RankDependence {
  std::string text;  ///< "the branch on `rank == 1`"
  SourcePlace place{};
};

/// The first such statement of a run with a program; nothing: its training looks at no rank.
std::optional<RankDependence> rank_dependence_of(const OneRun& run);

}  // namespace lockstep::cli
