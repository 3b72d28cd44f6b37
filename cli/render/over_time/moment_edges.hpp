#pragma once

#include <array>
#include <utility>
#include <vector>

#include "cli/render/over_time/left_out_time.hpp"
#include "rehearsal/measure/activity.hpp"

namespace lockstep::cli {

/// Something begins or ends.
struct MomentEdge {
  static constexpr int checkpoint = Activity::count;
  static constexpr int evaluation = checkpoint + 1;

  Time at{};
  int change = 0;
  int32_t rank = 0;
  int what = 0;  ///< an Activity::Kind, or one of the above
};

/// How many of each are under way on one rank.
struct ActiveCounts {
  std::array<int, Activity::count> of{};
  int checkpoints = 0;

  void add(const MomentEdge& edge) {
    (edge.what == MomentEdge::checkpoint ? checkpoints : of[static_cast<size_t>(edge.what)]) +=
        edge.change;
  }
};

/// What a rank did, as it was simulated; `as`: the rank that the edges name. Of what was left out
/// that which takes place at a time that `seen_by`, the rank that looks at it, does not leave out:
/// other ranks leave out the same periods, but some time earlier or later.
std::vector<MomentEdge> edges_of_rank(const Journal& journal, int32_t rank, int32_t as,
                                      const std::vector<LeftOutStretch>& seen_by);

/// Batches that are not trained, from the first to the last of each pass. From the step or the
/// backward before on: also what the first of them waits for counts. Passes within a
/// stretch that was left out are not listed, unless they are in its first or last period.
std::vector<std::pair<Time, Time>> evaluations_of(const Journal& journal, int32_t rank);

}  // namespace lockstep::cli
