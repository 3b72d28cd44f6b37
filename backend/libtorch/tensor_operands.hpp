#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/core/buffer.hpp"

namespace lockstep::backend {

/// Where a kernel finds its operands as tensors, on whatever device their buffers are.
class TensorOperands {
 public:
  virtual ~TensorOperands() = default;
  /// The elements of a slice, flat; undefined where the buffer carries no values. It is a copy, or
  /// the buffer's own memory: what is written to it must be stored too.
  virtual at::Tensor load(const Slice& from) = 0;
  /// Writes all elements of `values` from the slice's begin on, each rounded once to its type.
  virtual void store(const Slice& to, const at::Tensor& values) = 0;
  /// Like store, for a tensor that nobody else needs: it may become the buffer's memory.
  virtual void give(const Slice& to, const at::Tensor& values) { store(to, values); }
  /// Adds to what the first elements of the slice hold, each sum rounded once to its type. The
  /// slice may take the tensor itself, as in `give`, where it holds zeros.
  virtual void add(const Slice& to, const at::Tensor& values) = 0;

  // What a kernel kept may still be right for memory that was filled anew (ContentIdentities).
  /// Equal ones: equal elements. 0: not known.
  virtual uint64_t identity_of(const Slice& /*slice*/) const { return 0; }
  /// `to` holds the elements of `from`, perhaps in another type.
  virtual void moved(const Slice& /*from*/, const Slice& /*to*/) {}
  /// An optimizer has changed parameters.
  virtual void updated() {}
};

/// The content of all slices. Empty if one of them carries no values.
std::vector<at::Tensor> load_all(std::span<const Slice> slices, TensorOperands& operands);

}  // namespace lockstep::backend
