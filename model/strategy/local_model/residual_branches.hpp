#pragma once

#include <optional>
#include <vector>

#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// Skip connections of a forward: what waits beside the layers, and is met again.
class ResidualBranches : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  /// Which of ForwardRecord::residuals a residual layer belongs to, or a layer that reads what was
  /// put aside. Layers are asked in order.
  std::optional<uint32_t> residual_of(size_t layer);
  /// The markers of a forward, which cost nothing themselves.
  void pass(const LayerRun& run);
  /// The shortcut's gradient waits for that of the branch before it, which has the type of its
  /// result.
  void turn_to_shortcut(Rank& rank, const LayerRun& run);
  /// What the backward of a residual layer reads and writes beside others. The gradient of a sum
  /// goes two ways, and the one round the branch comes back at its beginning. A product has a
  /// gradient of its own for either factor. Those of what was put aside add up.
  void meet(Rank& rank, const LayerRun& run, std::vector<Slice>& reads, std::vector<Slice>& writes);
};

}  // namespace lockstep
