#pragma once

#include <span>
#include <vector>

#include "model/trainer/loop/weight_update.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// What one rank did to its weights.
struct RankUpdates {
  int32_t rank = 0;
  std::span<const WeightUpdate> updates;
};

/// What a rank holds of the model between steps.
enum class Holding : uint8_t {
  all,   ///< a replica
  part,  ///< a shard, which no other rank updates
};

/// Ranks that hold replicas or shards of one model update them alike (LS305), judged by the
/// statements that they reached, without values. One finding: the first update that differs.
std::vector<Finding> updates_agree(std::span<const RankUpdates> ranks,
                                   Holding holding = Holding::all);

}  // namespace lockstep
