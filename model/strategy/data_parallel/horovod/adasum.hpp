#pragma once

#include <vector>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The Adasum of two vectors for each of `sums`, by one kernel: each without half of its projection
/// on the other, added up. Orthogonal vectors add up, parallel ones of equal length give one of
/// them (common/ops/adasum/adasum.h).
Ticket adasum_of(Rank& rank, const std::vector<Slice>& first, const std::vector<Slice>& second,
                 const std::vector<Slice>& sums, const ComputeOptions& options);

/// What DistributedOptimizer does with `op=hvd.Adasum`: each rank's optimizer steps alone, and by
/// how much that changed each parameter is combined, tensor by tensor. On GPUs nodes average first;
/// then pairs of nodes combine, then pairs of these (horovod/torch/optimizer.py,
/// ops/adasum_gpu_operations.cc).
class AdasumExchange {
 public:
  explicit AdasumExchange(Replica& replica) : replica_(&replica) {}

  /// Makes the groups, once. Raises where the number of nodes is no power of two.
  Program begin(Rank& rank);
  /// Before the step of the rank's own optimizer.
  void remember(Rank& rank, size_t optimizer);
  /// After it. Gives the bytes of each message.
  Task<std::vector<Bytes>> combine(Rank& rank);

 private:
  Ticket combine_pair(Rank& rank, GroupId pair, Ticket after);

  Replica* replica_;
  GroupId node_ = world_group;
  std::vector<GroupId> pairs_;  ///< of nodes, level by level
  bool has_groups_ = false;
  std::vector<Slice> values_;  ///< that the optimizer steps
  Slice start_;                ///< what they were before
  Slice delta_;
};

}  // namespace lockstep
