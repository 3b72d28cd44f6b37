#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/trainer/data/data_loader.hpp"

namespace lockstep {

/// The samples of the first batches of a pass, in the order in which they were used: a list, or the
/// rule that makes it, which takes no room.
class UsedSamples {
 public:
  UsedSamples() = default;
  UsedSamples(std::vector<int64_t> listed) : listed_(std::move(listed)) {}
  UsedSamples(RankBatches batches, int64_t count) : batches_(std::move(batches)), count_(count) {}

  int64_t size() const;
  std::vector<int64_t> list() const;
  /// The same samples of all ranks together as `list` gives, in an order of their own: it takes
  /// less time where the epoch was shuffled.
  std::vector<int64_t> list_unshuffled() const;
  /// What another replica used that took as many batches by the same rule; where samples are
  /// listed, the same.
  UsedSamples of_replica(int64_t index) const;
  /// How replicas that take turns share the samples, of which this one used the first `size`;
  /// nothing: samples are listed, or shared otherwise.
  std::optional<Sampler::Options> turns() const;

 private:
  std::vector<int64_t> listed_;
  std::optional<RankBatches> batches_;
  int64_t count_ = 0;  ///< batches
};

}  // namespace lockstep
