#include "backend/libtorch/tensor_buffers.hpp"

#include <ATen/ATen.h>

#include "backend/libtorch/tensor_values.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

void TensorBuffers::add(BufferId buffer, const BufferSpec& spec, const at::TensorOptions& where,
                        bool carries_values) {
  const auto options = where.dtype(scalar_type_of(spec.dtype));
  const at::Tensor memory =
      carries_values ? at::zeros({spec.elements}, options) : at::empty({spec.elements}, options);
  buffers_[buffer.value] = {memory, carries_values && spec.elements > 0};
}

const TensorBuffers::Entry& TensorBuffers::entry(BufferId buffer) const {
  const auto found = buffers_.find(buffer.value);
  ensure(found != buffers_.end(), "a known buffer, in use or just released");
  return found->second;
}

at::Tensor TensorBuffers::memory(const Slice& of) const {
  const at::Tensor& whole = entry(of.buffer).memory;
  ensure(of.begin >= 0 && of.elements >= 0 && of.begin + of.elements <= whole.numel(),
         "a slice within its buffer");
  return whole.narrow(0, of.begin, of.elements);
}

at::Tensor TensorBuffers::load(const Slice& from) {
  const bool valued = from.buffer != no_buffer && from.elements > 0 && carries_values(from.buffer);
  return valued ? memory(from) : at::Tensor();
}

void TensorBuffers::store(const Slice& to, const at::Tensor& values) {
  if (to.buffer == no_buffer || !carries_values(to.buffer) || values.numel() == 0) {
    return;
  }
  const at::Tensor place = memory({to.buffer, to.dtype, to.begin, values.numel()});
  const bool is_there = place.const_data_ptr() == values.const_data_ptr() &&
                        place.scalar_type() == values.scalar_type();
  if (!is_there) {
    place.copy_(values.detach().reshape({-1}));
  }
}

// A graph that was made of the old values is told by the tensor's version.
void TensorBuffers::written_by_others(const Slice& to) {
  if (to.buffer != no_buffer) {
    entry(to.buffer).memory.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace lockstep::backend
