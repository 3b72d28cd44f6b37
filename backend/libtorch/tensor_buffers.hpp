#pragma once

#include <ATen/core/TensorBody.h>

#include <unordered_map>

#include "backend/libtorch/content_identity.hpp"
#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/values.hpp"

namespace lockstep::backend {

/// Whether the memory of a buffer is its own from the first moment, or is there once it is used,
/// and may be the very tensor that a kernel made, so that nothing is copied.
enum class BufferMemory : uint8_t { fixed, taken_over };

/// Buffers whose memory is that of tensors, on any device: `load` gives the memory itself, `store`
/// writes into it. What happens on a device is ordered by its current stream. Not thread-safe.
class TensorBuffers : public TensorOperands {
 public:
  explicit TensorBuffers(BufferMemory kind = BufferMemory::fixed) : kind_(kind) {}

  /// Allocates zeros if it carries values, else uninitialised memory. Throws c10::Error.
  void add_buffer(BufferId buffer, const BufferSpec& spec, const at::TensorOptions& where,
                  bool carries_values);
  void remove(BufferId buffer) {
    buffers_.erase(buffer.value);
    identities_.forget(buffer);
  }
  bool has(BufferId buffer) const { return buffers_.contains(buffer.value); }

  at::Tensor load(const Slice& from) override;
  void store(const Slice& to, const at::Tensor& values) override;
  void give(const Slice& to, const at::Tensor& values) override;
  void add(const Slice& to, const at::Tensor& values) override;
  /// True: the tensor, which nobody else looks at, is the buffer's memory now. False: it cannot be.
  bool take_over(const Slice& to, const at::Tensor& values);
  /// Whether nothing was written to the buffer since it was added.
  bool is_untouched(BufferId buffer) const { return !entry(buffer).memory.defined(); }

  /// The memory of a slice, also of one that carries no values.
  at::Tensor memory(const Slice& of);
  bool carries_values(BufferId buffer) const { return entry(buffer).carries_values; }
  bool is_on_cpu(BufferId buffer) const { return entry(buffer).options.device().is_cpu(); }
  /// A kernel that is not LibTorch's writes to the slice.
  void written_by_others(const Slice& to);

  uint64_t identity_of(const Slice& slice) const override { return identities_.of(slice); }
  void moved(const Slice& from, const Slice& to) override { identities_.moved(from, to); }
  void updated() override { identities_.updated(); }
  void gathered(uint64_t communicator, uint64_t part, const Slice& whole) {
    identities_.gathered(communicator, part, whole);
  }

 private:
  struct Entry {
    at::TensorOptions options;
    DType dtype = DType::fp32;
    int64_t elements = 0;
    bool carries_values = false;
    at::Tensor memory;  ///< undefined: not used yet
  };
  const Entry& entry(BufferId buffer) const;
  Entry& entry(BufferId buffer);

  BufferMemory kind_;
  ContentIdentities identities_;
  std::unordered_map<uint32_t, Entry> buffers_;  ///< by BufferId; looked up only
};

/// All elements of `values` into the first of `place`, each rounded once to its type.
void copy_into(const at::Tensor& place, const at::Tensor& values);
/// The same, added to what is there.
void add_into(const at::Tensor& place, const at::Tensor& values);

}  // namespace lockstep::backend
