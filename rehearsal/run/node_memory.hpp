#pragma once

#include <vector>

#include "properties/rank_set.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Host memory or the local drive of one node, which its ranks share. In host memory are batches,
/// what is offloaded, and of ranks on CPU all that they hold.
struct NodeMemory {
  int32_t node = 0;
  RankSet ranks;
  Bytes needed{};  ///< the sum of the peaks of its ranks
  Bytes capacity = Bytes::max();
  MemoryByPurpose by_purpose{};

  Bytes of(Purpose purpose) const { return by_purpose[static_cast<size_t>(purpose)]; }
  bool fits() const { return needed <= capacity; }
  /// More than batches: something of a training on GPUs lies there.
  bool holds_offloaded() const;
};

/// Host memory of every node that has ranks, as these are placed, or its drive. Nothing: it was not
/// run, or not on nodes.
std::vector<NodeMemory> node_memory_of(const OneRun& run, DeviceId where = host_device);

/// The node that needs most; null: there is none.
const NodeMemory* fullest(const std::vector<NodeMemory>& nodes);

/// Ranks of some node need more together than it has, in memory or on its drive. The world itself
/// gives every rank what it asks for, because only all ranks of a node together run out of it.
bool exceeds_node_memory(const OneRun& run);

}  // namespace lockstep::cli
