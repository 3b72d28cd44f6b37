#pragma once

#include <memory>
#include <vector>

#include "model/program/journal.hpp"
#include "model/program/lane.hpp"
#include "model/program/run.hpp"

namespace lockstep::backend {

/// The host threads of one rank as lanes of one real thread, and what becomes of them. Used by that
/// thread alone.
class HostLanes {
 public:
  /// `journal` may be null; it outlives the lanes.
  HostLanes(RankId rank, Journal* journal) : rank_(rank), journal_(journal) {}

  Lane& add(Program program);
  /// The rank's program could not even be made.
  void not_started(std::exception_ptr failure) { end_ = end_of(failure); }
  /// Runs a lane until it waits or has ended. A lost rank falls silent as a whole.
  void resume(Lane& lane);
  /// Destroys all lanes; rows that were written after the seal are taken back.
  void clear();

  bool any_live() const { return live_ > 0; }
  LaneId current() const { return current_; }
  const RankEnd& end() const { return end_; }

  /// From here on nothing that this rank still does counts: the run was aborted, or the rank lost.
  void seal();
  bool sealed() const { return sealed_; }
  /// Throws RankFailure.
  void refuse_when_sealed() const;

 private:
  void ended(Lane& lane);
  void record_end(LaneId lane, const RankEnd& end);

  RankId rank_;
  Journal* journal_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  size_t live_ = 0;
  LaneId current_{};
  bool sealed_ = false;
  std::vector<int64_t> sealed_rows_;  ///< by lane: how long the journal was
  RankEnd end_;
};

}  // namespace lockstep::backend
