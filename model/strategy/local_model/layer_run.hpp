#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "model/core/buffer.hpp"
#include "model/network/checkpointed_segment.hpp"

namespace lockstep {

class Rank;

/// Buffers that the forward of few layers leaves.
struct RareBuffers {
  Slice recomputed;       ///< what the framework keeps for backward, of the forward that ran again
  Slice weight_copies;    ///< autocast's
  Slice statistics;       ///< of all ranks, where a batch norm shares them
  Slice output_gradient;  ///< while the gradients of its weights are yet to come
};

/// Buffers that the forward of one layer left. A rank has one for each of a thousand layers.
class LayerRun {
 public:
  uint32_t layer = 0;
  std::optional<uint32_t> residual;  ///< of residual layers: index into ForwardRecord::residuals
  Slice input;
  Slice output;
  Slice kept;  ///< memory that the framework keeps for backward
  /// In a training: the segment whose forward runs again before its backward.
  const CheckpointedSegment* segment = nullptr;

  const RareBuffers& rare() const {
    static constexpr RareBuffers none{};
    return rare_ ? *rare_ : none;
  }
  /// To set one.
  RareBuffers& own_rare() {
    if (!rare_) {
      rare_ = std::make_unique<RareBuffers>();
    }
    return *rare_;
  }
  /// Null: it has none of them.
  RareBuffers* rare_if_any() { return rare_.get(); }
  /// Frees what was kept for its backward.
  void forget_kept(Rank& rank);

 private:
  std::unique_ptr<RareBuffers> rare_;
};

/// Which of a layer's forwards.
struct LayerTurn {
  bool training = true;
  bool again = false;    ///< the second one, of a checkpointed segment
  bool is_last = false;  ///< of that segment
};

}  // namespace lockstep
