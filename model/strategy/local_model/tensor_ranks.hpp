#pragma once

#include <cstdint>

#include "model/core/ids.hpp"

namespace lockstep {

/// The ranks that compute the layers of one replica together, of which each has parts, as one of
/// them sees it: parts of the layers, or of each sample.
struct TensorRanks {
  GroupId group{};
  StreamId on{};  ///< where what travels between them goes
  int32_t ranks = 1;
  int32_t index = 0;       ///< of this rank: which parts it has
  int32_t first_rank = 0;  ///< global, of the first
  int32_t step = 1;        ///< between their global ranks
  int32_t rank_of(int32_t other) const { return first_rank + other * step; }
};

/// The ranks that divide the experts of mixtures. Each has some of them; where several ranks
/// compute an expert together, each has some of its hidden features.
struct ExpertRanks {
  TensorRanks parallel{};  ///< with the other experts, and the same features
  TensorRanks tensor{};    ///< with the same experts
  /// All of these gather how many tokens each expert gets from each rank (Megatron-LM); 0 ranks:
  /// those of `parallel` exchange the numbers for their own experts (torchtitan).
  TensorRanks counting{.ranks = 0};

  int32_t index() const { return parallel.index * tensor.ranks + tensor.index; }
};

}  // namespace lockstep
