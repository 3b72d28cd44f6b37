#include "backend/libtorch/tensor_store.hpp"

#include <ATen/ATen.h>

namespace lockstep::backend {

void TensorStore::add(BufferId buffer, const BufferSpec& spec) {
  const std::lock_guard lock(mutex_);
  buffers_.add_buffer(buffer, spec, at::TensorOptions(at::kCPU), true);
}

void TensorStore::remove(BufferId buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.remove(buffer);
}

at::Tensor TensorStore::load(const Slice& from) {
  const std::lock_guard lock(mutex_);
  return from.buffer != no_buffer && buffers_.has(from.buffer) ? buffers_.load(from) : at::Tensor();
}

ValueView TensorStore::view(const Slice& of) {
  const auto memory = std::make_shared<at::Tensor>(load(of));
  if (!memory->defined()) {
    return {};
  }
  return {{static_cast<const std::byte*>(memory->const_data_ptr()), memory->nbytes()}, memory};
}

void TensorStore::change(const Slice& slice,
                         const std::function<void(std::span<std::byte>)>& fill) {
  const at::Tensor place = load(slice);
  if (!place.defined()) {
    return;
  }
  fill({static_cast<std::byte*>(place.mutable_data_ptr()), place.nbytes()});
  const std::lock_guard lock(mutex_);
  buffers_.written_by_others(slice);
}

void TensorStore::store(const Slice& to, const at::Tensor& values) {
  if (const at::Tensor place = load(to); place.defined() && values.numel() > 0) {
    copy_into(place.narrow(0, 0, values.numel()), values);
  }
}

void TensorStore::give(const Slice& to, const at::Tensor& values) {
  {
    const std::lock_guard lock(mutex_);
    if (to.buffer == no_buffer || !buffers_.has(to.buffer) || buffers_.take_over(to, values)) {
      return;
    }
  }
  store(to, values);
}

void TensorStore::add(const Slice& to, const at::Tensor& values) {
  {
    const std::lock_guard lock(mutex_);
    if (to.buffer == no_buffer || !buffers_.has(to.buffer) ||
        (buffers_.is_untouched(to.buffer) && buffers_.take_over(to, values))) {
      return;
    }
  }
  if (const at::Tensor place = load(to); place.defined() && values.numel() > 0) {
    add_into(place.narrow(0, 0, values.numel()), values);
  }
}

}  // namespace lockstep::backend
