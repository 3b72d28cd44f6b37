#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The weights of a replica as they were before its last updates, each for as long as some backward
/// needs them (weight stashing). A version is named by the updates that it has seen.
class WeightVersions {
 public:
  int64_t newest() const { return newest_; }
  /// An update comes: the replica gets memory of its own for it, with the values that it has now,
  /// which stay as they are. `keeps` false: nobody needs these, and the update may overwrite them.
  void begin_update(Rank& rank, Replica& replica, bool keeps);
  /// Frees versions before this one.
  void forget_before(Rank& rank, int64_t oldest);
  /// What follows computes by this version, until turn_back().
  void turn_to(Replica& replica, int64_t version);
  void turn_back(Replica& replica);

 private:
  struct Version {
    int64_t number = 0;
    std::vector<Slice> values;  ///< of the parameters that updates change
  };
  void exchange(Replica& replica);

  std::deque<Version> kept_;  ///< the oldest first
  int64_t newest_ = 0;
  Version* turned_to_ = nullptr;  ///< whose values the replica has, and which has the replica's
};

}  // namespace lockstep
