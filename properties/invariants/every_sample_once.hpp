#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "properties/finding.hpp"

namespace lockstep {

/// The samples that one rank took in one epoch, in order.
struct RankSamples {
  int32_t rank = 0;
  int32_t epoch = 0;
  std::vector<int64_t> indices;
};

struct SampleCounts {
  int64_t repeated = 0;  ///< taken beyond the first time
  int64_t missed = 0;    ///< of [0, samples) never taken
};
SampleCounts count_samples(std::span<const RankSamples> taken, int32_t epoch, int64_t samples);

/// Every sample of [0, samples) is evaluated exactly once in every epoch (LS304). One finding: the
/// first epoch in which that does not hold. A warning where a sampler pads: how much that changes
/// depends on the samples.
std::vector<Finding> every_sample_once(std::span<const RankSamples> taken, int64_t samples);

/// Every sample is taken by one rank, as far as training needs it: padding is fine, all ranks
/// taking all samples is an error (LS304).
std::vector<Finding> samples_divided(std::span<const RankSamples> taken, int64_t samples);

/// A shuffled order differs from epoch to epoch (LS304, a warning): else DistributedSampler's
/// set_epoch was forgotten. Orders that are sorted were not shuffled, padding at their end aside.
std::vector<Finding> order_changes(std::span<const RankSamples> taken);

}  // namespace lockstep
