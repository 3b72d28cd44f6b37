#pragma once

#include <cstdint>

namespace lockstep {

/// How ranks that divide the positions of a sample let each query meet all keys.
enum class ContextExchange : uint8_t {
  all_gather,  ///< each rank gets the keys and values of all
  all_to_all,  ///< each rank gets all positions of some heads
  ring,        ///< keys and values go round, from rank to rank
};

/// Of a layer that has a part of the positions, and computes by which ones they are.
struct ContextPart {
  int32_t ranks = 1;  ///< that divide the positions
  ContextExchange exchange = ContextExchange::ring;
};

/// The positions of one of the ranks: of twice as many stretches as there are ranks, rank r has
/// numbers r and 2 ranks - 1 - r, so that under a causal mask all have the same work.
struct RankPositions {
  int64_t count = 0;  ///< of this rank
  int32_t ranks = 1;
  int32_t index = 0;

  /// The position in the sample of this rank's `position`-th.
  int64_t in_sample(int64_t position) const {
    if (ranks == 1) {
      return position;
    }
    const int64_t stretch = count / 2;
    return position < stretch ? index * stretch + position
                              : (2 * ranks - 1 - index) * stretch + position - stretch;
  }
};

}  // namespace lockstep
