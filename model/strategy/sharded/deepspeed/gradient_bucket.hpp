#pragma once

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Memory of one size in which gradients lie one behind the other until they are reduced
/// (contiguous_gradients of DeepSpeed). What no model of this size fills is memory by itself, so
/// that a world that computes values keeps none of it.
class GradientBucket {
 public:
  /// `elements`: of the bucket.
  static GradientBucket allocate(Rank& rank, const Replica& replica, int64_t elements);
  void release(Rank& rank) const;

  Slice part(int64_t begin, int64_t elements) const { return used_.part(begin, elements); }
  /// Copies a gradient to this place, where it lives from then on: what the backward made is freed.
  void take(Rank& rank, Replica& replica, size_t parameter, int64_t begin) const;

 private:
  Slice used_;
  Slice rest_;
};

}  // namespace lockstep
