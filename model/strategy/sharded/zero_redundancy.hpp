#pragma once

#include <vector>

#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/transfers.hpp"

namespace lockstep {

/// torch's ZeroRedundancyOptimizer (torch/distributed/optim/zero_redundancy_optimizer.py):
/// gradients are everybody's, but each rank keeps the optimizer state of the parameters that it
/// owns, updates these and broadcasts them. A part of strategies in which all ranks hold all
/// parameters.
class ZeroRedundancyUpdate {
 public:
  /// `optimizer`: index into TrainingPlan::optimizers, whose parameters it divides.
  ZeroRedundancyUpdate(Replica& replica, size_t optimizer, int32_t ranks);

  /// parameters_as_bucket_view: memory in which what a rank owns lies in one piece. Writes that of
  /// the optimizer's parameters into `parameters`, which is by parameter of the replica.
  void allocate_pieces(Rank& rank, std::vector<Slice>& parameters) const;
  /// Its updates; later work on the compute stream sees everybody's.
  void step(Rank& rank, const UpdateOptions& options, Transfers& transfers);
  /// consolidate_state_dict: every rank but 0 broadcasts its part of the state.
  Program gather_state(Rank& rank);

  const std::vector<int32_t>& owners() const { return owners_; }

 private:
  bool holds(size_t parameter) const;
  bool has_buckets() const;
  Bytes state_bytes_of(int32_t owner) const;

  Replica* replica_;
  size_t optimizer_;
  std::vector<int32_t> owners_;  ///< by parameter of the replica; -1: another optimizer's
  std::vector<std::vector<size_t>> owned_;  ///< by rank, in the order in which it sends them
};

}  // namespace lockstep
