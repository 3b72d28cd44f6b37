#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// How many ranks each node has, in the order of nodes: a launcher may be given hosts of different
/// sizes. Ranks are numbered node after node.
using RanksOfNodes = std::vector<int32_t>;

/// Where a rank stands among those of its node.
struct PositionOnNode {
  int32_t node = 0;
  int32_t local_rank = 0;
  int32_t local_world_size = 1;
};

inline PositionOnNode position_on_node(const RanksOfNodes& nodes, int32_t rank) {
  PositionOnNode position{0, rank, 1};
  for (const int32_t ranks : nodes) {
    position.local_world_size = ranks;
    if (position.local_rank < ranks) {
      break;
    }
    position.local_rank -= ranks;
    ++position.node;
  }
  return position;
}

}  // namespace lockstep
