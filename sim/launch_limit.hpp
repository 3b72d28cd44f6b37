#pragma once

#include <cstdint>

#include "model/program/journal.hpp"
#include "sim/rank_state.hpp"

namespace lockstep::sim {

/// How far a rank's host runs ahead of its devices: by a bounded number of submissions.
class LaunchLimit {
 public:
  /// `submissions`: at least 1. The journal outlives it and may be null.
  LaunchLimit(int64_t submissions, Journal* journal)
      : submissions_(submissions), journal_(journal) {}

  /// Whether a submission must make_room() before it: else there surely is some.
  bool is_near(const RankState& rank, const LaneState& lane) const {
    return lane.tickets.in_flight() >= submissions_ || rank.launched.counting() ||
           rank.lanes.size() > 1;
  }
  /// Lets the host wait until there is room; or, where nobody knows yet when that is, holds the
  /// lane.
  void make_room(RankState& rank, LaneState& lane) const;
  /// Lets the host's clock catch up with the holds that have ended; whether any has not.
  static bool holds(const RankState& rank, LaneState& lane);

 private:
  static void count_launched(RankState& rank);
  void hold(RankState& rank, LaneState& lane) const;

  int64_t submissions_;
  Journal* journal_;
};

}  // namespace lockstep::sim
