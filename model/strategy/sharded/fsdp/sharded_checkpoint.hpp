#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/exchange/distributed_checkpoint.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/tensor_ranks.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// What a checkpoint of a model holds whose parameters ranks store parts of.
class ShardedCheckpoint {
 public:
  /// Who has the parts, and what there is of the optimizers' state.
  struct Division {
    int32_t shard_ranks;   ///< that each parameter is cut over
    int32_t tensor_ranks;  ///< that compute each replica together
    /// By optimizer: before its first step it has no state. Outlives this.
    const std::vector<bool>& has_stepped;
  };
  /// `plan`: with the types in which parts are stored. It and the replica outlive this.
  ShardedCheckpoint(const Replica& replica, const TrainingPlan& plan, const Division& division)
      : replica_(replica), plan_(plan), division_(division) {}

  /// Tensors that the optimizer keeps for every parameter; 0 before its first step.
  int state_tensors_of(size_t optimizer) const;
  bool updates(size_t optimizer, size_t parameter) const;
  /// The model and, unless weights alone are asked for, the state of its optimizers.
  ModelBytes bytes() const;
  /// bytes() as torch.distributed.checkpoint divides it.
  CheckpointParts parts(int32_t ranks, bool weights_only) const;
  /// Takes kinds of ranks apart that write different bytes of it once every optimizer has stepped:
  /// of a part that several ranks hold one writes it.
  void divide_by_parts(std::vector<int64_t>& kinds) const;
  /// Elements of this rank's part of a parameter that is cut by its first dimension.
  int64_t row_part_elements(size_t parameter, int32_t rank) const;

 private:
  int64_t elements_of(size_t parameter) const;

  const Replica& replica_;
  const TrainingPlan& plan_;
  Division division_;
};

}  // namespace lockstep
