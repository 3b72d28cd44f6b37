#pragma once

#include <cstddef>
#include <optional>

#include "model/core/buffer.hpp"
#include "model/network/checkpointed_segment.hpp"

namespace lockstep {

/// Buffers that the forward of one layer left.
struct LayerRun {
  size_t layer = 0;
  Slice input;
  Slice output;
  Slice kept;                      ///< memory that the framework keeps for backward
  Slice recomputed;                ///< the same, of the forward that ran again
  Slice weight_copies;             ///< autocast's
  Slice statistics;                ///< of all ranks, where a batch norm shares them
  Slice output_gradient;           ///< while the gradients of its weights are yet to come
  std::optional<size_t> residual;  ///< of residual layers: index into ForwardRecord::residuals
  /// In a training: the segment whose forward runs again before its backward.
  const CheckpointedSegment* segment = nullptr;
};

/// Which of a layer's forwards.
struct LayerTurn {
  bool training = true;
  bool again = false;    ///< the second one, of a checkpointed segment
  bool is_last = false;  ///< of that segment
};

}  // namespace lockstep
