#include "backend/libtorch/tensor_buffers.hpp"

#include <ATen/ATen.h>

#include "backend/libtorch/tensor_values.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

at::Tensor made(int64_t elements, const at::TensorOptions& options, bool of_zeros) {
  return of_zeros ? at::zeros({elements}, options) : at::empty({elements}, options);
}

}  // namespace

void TensorBuffers::add_buffer(BufferId buffer, const BufferSpec& spec,
                               const at::TensorOptions& where, bool carries_values) {
  Entry entry{where.dtype(scalar_type_of(spec.dtype)),
              spec.dtype,
              spec.elements,
              carries_values && spec.elements > 0,
              {}};
  if (kind_ == BufferMemory::fixed) {
    entry.memory = made(entry.elements, entry.options, carries_values);
  }
  buffers_[buffer.value] = std::move(entry);
}

const TensorBuffers::Entry& TensorBuffers::entry(BufferId buffer) const {
  const auto found = buffers_.find(buffer.value);
  ensure(found != buffers_.end(), "a known buffer, in use or just released");
  return found->second;
}

TensorBuffers::Entry& TensorBuffers::entry(BufferId buffer) {
  const auto found = buffers_.find(buffer.value);
  ensure(found != buffers_.end(), "a known buffer, in use or just released");
  return found->second;
}

at::Tensor TensorBuffers::memory(const Slice& of) {
  Entry& whole = entry(of.buffer);
  ensure(of.begin >= 0 && of.elements >= 0 && of.begin + of.elements <= whole.elements,
         "a slice within its buffer");
  if (!whole.memory.defined()) {
    whole.memory = made(whole.elements, whole.options, whole.carries_values);
  }
  return whole.memory.narrow(0, of.begin, of.elements);
}

at::Tensor TensorBuffers::load(const Slice& from) {
  const bool valued = from.buffer != no_buffer && from.elements > 0 && carries_values(from.buffer);
  return valued ? memory(from) : at::Tensor();
}

void TensorBuffers::store(const Slice& to, const at::Tensor& values) {
  if (to.buffer != no_buffer && carries_values(to.buffer) && values.numel() > 0) {
    const Slice place{to.buffer, to.dtype, to.begin, values.numel()};
    copy_into(memory(place), values);
    identities_.written(place);
  }
}

// Nobody else looks at it: no view, no graph, no other buffer.
bool TensorBuffers::take_over(const Slice& to, const at::Tensor& values) {
  if (kind_ == BufferMemory::fixed || to.buffer == no_buffer) {
    return false;
  }
  Entry& whole = entry(to.buffer);
  const bool fits = whole.carries_values && to.elements == whole.elements &&
                    values.numel() == whole.elements &&
                    values.scalar_type() == scalar_type_of(whole.dtype) &&
                    values.device() == whole.options.device() && values.is_contiguous();
  if (!fits || values.storage().use_count() != 1 || values.storage().nbytes() != values.nbytes()) {
    return false;
  }
  whole.memory = values.detach().view({-1});
  identities_.written(to);
  return true;
}

void TensorBuffers::give(const Slice& to, const at::Tensor& values) {
  if (!take_over(to, values)) {
    store(to, values);
  }
}

void TensorBuffers::add(const Slice& to, const at::Tensor& values) {
  if (to.buffer == no_buffer || !carries_values(to.buffer) || values.numel() == 0) {
    return;
  }
  if (!is_untouched(to.buffer) || !take_over(to, values)) {
    const Slice place{to.buffer, to.dtype, to.begin, values.numel()};
    add_into(memory(place), values);
    identities_.written(place);
  }
}

void copy_into(const at::Tensor& place, const at::Tensor& values) {
  const bool is_there = place.const_data_ptr() == values.const_data_ptr() &&
                        place.scalar_type() == values.scalar_type();
  if (!is_there) {
    place.copy_(values.detach().reshape({-1}));
  }
}

void add_into(const at::Tensor& place, const at::Tensor& values) {
  place.add_(values.detach().reshape({-1}));
}

// A graph that was made of the old values is recognised by the tensor's version.
void TensorBuffers::written_by_others(const Slice& to) {
  if (to.buffer == no_buffer) {
    return;
  }
  identities_.written(to);
  if (const at::Tensor& whole = entry(to.buffer).memory; whole.defined()) {
    whole.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace lockstep::backend
