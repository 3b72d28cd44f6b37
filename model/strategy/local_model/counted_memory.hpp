#pragma once

#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// What a forward and its backward hold where no values are computed: the memory that memory_of()
/// counts. Nothing with numerics, where every tensor is an operand.
class CountedMemory : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  /// Notes in the run what is kept for its backward. Returns what is there only while it runs.
  Slice begin_layer(Rank& rank, LayerRun& run, const LayerTurn& turn);
  Slice begin_loss(Rank& rank, bool training);
  /// Frees those that autograd does not save for the backward.
  void free_weight_copies(Rank& rank, bool training);
  /// What is there only while the backward runs; `made_gradients` are accounted already.
  Slice begin_backward(Rank& rank, const LayerRun& run, Bytes made_gradients);
  Slice begin_backward_of_loss(Rank& rank);

 private:
  Slice hold(Rank& rank, Purpose purpose, Bytes whole);
  Slice keep(Rank& rank, Bytes of_sample);
  Bytes backward_working_set(const LayerRun& run, Bytes made_gradients) const;
};

}  // namespace lockstep
