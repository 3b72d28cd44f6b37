#pragma once

#include <string_view>
#include <vector>

#include "model/strategy/local_model/optimizer.hpp"

namespace lockstep {

/// A DTensor, as this rank's optimizer has it.
struct PartOfTensor {
  size_t parameter = 0;               ///< index into Replica::parameters()
  OptimizedTensor* tensor = nullptr;  ///< null: this rank has no element of it
  /// Ranks that hold the other parts, for each dimension of the mesh that cuts it; none: the tensor
  /// is whole.
  std::vector<GroupId> over{};
};

/// The update by an optimizer that takes norms of tensors (Lamb), which DTensor adds up over the
/// ranks. Every rank calls it with parts of the same tensors that have gradients, in the same
/// order.
Program step_over_ranks(Rank& rank, const OptimizerPlan& optimizer, OptimizerKernels kernels,
                        const std::vector<PartOfTensor>& parts, const ComputeOptions& options,
                        std::string_view share_site);

}  // namespace lockstep
