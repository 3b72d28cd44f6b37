#pragma once

#include <vector>

#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"

namespace lockstep {

/// Weights that layers on several ranks of a pipeline share, of which each rank has a copy: their
/// gradients are added up over these ranks, so that the copies stay alike (Megatron-LM,
/// finalize_model_grads.py, _allreduce_embedding_grad).
class SharedWeights {
 public:
  /// Makes a group for each of them, a collective of all ranks. Returns
  /// whether there is one.
  Task<bool> make_groups(Rank& rank, const Replica& replica, const PipelinePlan& pipeline);
  /// Whether this rank's copy of a weight is the one of another rank's stage.
  bool is_copy(size_t parameter) const;
  /// Later work on the compute stream sees the sums. `replicas`: ranks with the same stages, so
  /// many of them; a reducer has averaged the gradient over them where its stage defines the
  /// weight. Null: there are none. Returns the bytes of each all_reduce.
  std::vector<Bytes> add_up(Rank& rank, Replica& replica, const ReducingGroup* replicas,
                            int32_t replica_count);

 private:
  struct Shared {
    size_t parameter = 0;
    GroupId group{};
    bool is_defined_here = false;
  };
  std::vector<Shared> own_;  ///< of which this rank has a copy
};

}  // namespace lockstep
