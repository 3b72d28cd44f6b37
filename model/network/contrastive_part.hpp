#pragma once

#include <cstdint>

namespace lockstep {

/// What a kernel of a loss does that compares views of samples with each other
/// (model/network/arithmetic/contrastive_loss.hpp). Kernel::loss_forward has it as scalar 0, before
/// the first sample of this rank among all; Kernel::loss_backward as scalar 1, behind the factor.
/// Between the two ranks may gather each other's views.
enum class ContrastivePart : uint8_t {
  /// forward: reads embeddings; writes first and second views. backward: reads embeddings, the
  /// gradients of own views, and those of this rank's views among all; writes the gradient of
  /// embeddings.
  views,
  /// forward: reads own first, own second, all first, all second views, and behind them what the
  /// samples are compared by, the targets; writes loss[1]. backward: reads the same; writes the
  /// gradients of the views.
  comparison,
};

}  // namespace lockstep
