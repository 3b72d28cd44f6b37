#pragma once

#include <mutex>

#include "backend/libtorch/tensor_buffers.hpp"
#include "model/program/value_store.hpp"

namespace lockstep::backend {

/// The values of one rank's buffers, of those that carry any, in tensors on the CPU: for kernels
/// the memory itself, for all else its bytes. Thread-safe, but for two who write to the same
/// elements.
class TensorStore final : public ValueStore, public TensorOperands {
 public:
  void add(BufferId buffer, const BufferSpec& spec) override;
  void remove(BufferId buffer) override;
  ValueView view(const Slice& of) override;
  void change(const Slice& slice, const std::function<void(std::span<std::byte>)>& fill) override;

  at::Tensor load(const Slice& from) override;
  void store(const Slice& to, const at::Tensor& values) override;
  void give(const Slice& to, const at::Tensor& values) override;
  void add(const Slice& to, const at::Tensor& values) override;

 private:
  std::mutex mutex_;  ///< of the table alone: memory is copied without it
  TensorBuffers buffers_{BufferMemory::taken_over};
};

}  // namespace lockstep::backend
