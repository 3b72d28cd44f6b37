#pragma once

#include <cstdint>
#include <vector>

#include "model/program/rank_classes.hpp"
#include "model/strategy/layout/shard_layout.hpp"

namespace lockstep {

/// Tells ranks apart by what they hold: ranks of one kind have pieces of the same sizes, in the
/// same places of their shards, of tensors that are treated alike.
class ShardKinds {
 public:
  explicit ShardKinds(int32_t ranks) : kinds_(static_cast<size_t>(ranks), 0) {}

  /// `treatments`: by tensor of the layout, equal for tensors between which a rank makes no
  /// difference. The shard of rank r is that of place r in the layout.
  void divide(const ShardLayout& layout, const std::vector<int64_t>& treatments);
  /// Ranks that own something are each of a kind of their own.
  void set_apart(const std::vector<int32_t>& owners);

  /// By rank, from 0 on in the order of their first ranks.
  const std::vector<int64_t>& kinds() const { return kinds_; }

 private:
  std::vector<int64_t> kinds_;
};

/// Strategy::neighbourhoods_of_ranks where so many ranks that follow one another are neighbours,
/// and meet in collectives of all of them alone.
Neighbourhoods neighbours_in_order(int32_t ranks, int32_t neighbours);

}  // namespace lockstep
