#pragma once

#include <ATen/core/TensorBody.h>

#include <unordered_map>

#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/values.hpp"

namespace lockstep::backend {

/// Buffers whose memory is that of tensors, on any device: `load` gives the memory itself, `store`
/// writes into it. What happens on a device is ordered by its current stream. Not thread-safe.
class TensorBuffers : public TensorOperands {
 public:
  /// Of zeros where it carries values, else of whatever is there. Throws c10::Error.
  void add(BufferId buffer, const BufferSpec& spec, const at::TensorOptions& where,
           bool carries_values);
  void remove(BufferId buffer) { buffers_.erase(buffer.value); }

  at::Tensor load(const Slice& from) override;
  void store(const Slice& to, const at::Tensor& values) override;

  /// The memory of a slice, also of one that carries no values.
  at::Tensor memory(const Slice& of) const;
  bool carries_values(BufferId buffer) const { return entry(buffer).carries_values; }
  bool is_on_cpu(BufferId buffer) const { return entry(buffer).memory.is_cpu(); }
  /// A kernel that is not LibTorch's writes to the slice.
  void written_by_others(const Slice& to);

 private:
  struct Entry {
    at::Tensor memory;
    bool carries_values = false;
  };
  const Entry& entry(BufferId buffer) const;

  std::unordered_map<uint32_t, Entry> buffers_;  ///< by BufferId; looked up only
};

}  // namespace lockstep::backend
