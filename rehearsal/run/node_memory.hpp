#pragma once

#include <vector>

#include "properties/rank_set.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Host memory of one node, which its ranks share: batches, and what is offloaded. Of ranks on CPU
/// all that they hold.
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

/// Of every node that has ranks, as these are placed. Nothing: it was not run, or not on nodes.
std::vector<NodeMemory> node_memory_of(const OneRun& run);

/// The node that needs most; null: there is none.
const NodeMemory* fullest(const std::vector<NodeMemory>& nodes);

/// Ranks of some node need more together than it has. The world itself gives every rank what it
/// asks for, because only all ranks of a node together run out of it.
bool exceeds_host_memory(const OneRun& run);

}  // namespace lockstep::cli
