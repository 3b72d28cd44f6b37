#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// The part that a checkpointed segment recomputes, and which run counts for batch norm.
enum class Recomputation : uint8_t {
  /// torch.utils.checkpoint: the whole forward, each time with its effects, so that running
  /// statistics are updated twice.
  torch,
  /// FairScale's checkpoint_wrapper: the same, but batch norm tracks statistics in the second run
  /// only (patch_batchnorm in fairscale/nn/misc/checkpoint_activations.py).
  fairscale,
  /// Scores, softmax, dropout and weighted sum of one attention layer: selective recomputation
  /// (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models").
  attention_core,
};

/// Layers `first` to `last` of a flattened network. Their training forward keeps nothing but its
/// input, and runs again right before their backward. Chen et al. 2016, "Training Deep Nets with
/// Sublinear Memory Cost".
struct CheckpointedSegment {
  size_t first = 0;
  size_t last = 0;
  Recomputation recomputation = Recomputation::torch;
  bool operator==(const CheckpointedSegment&) const = default;
  bool contains(size_t layer) const { return first <= layer && layer <= last; }
};

}  // namespace lockstep
