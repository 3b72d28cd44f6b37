#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "model/core/buffer.hpp"

namespace lockstep {

/// The bytes of a slice, valid as long as the view.
struct ValueView {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> owner{};
};

/// Where a world keeps the values of its buffers, when its kernels work on memory of their own
/// kind. Slices lie within buffers that it was given. Thread-safe.
class ValueStore {
 public:
  virtual ~ValueStore() = default;
  /// Holds zeros.
  virtual void add(BufferId buffer, const BufferSpec& spec) = 0;
  virtual void remove(BufferId buffer) = 0;
  virtual ValueView view(const Slice& of) = 0;
  /// Calls `fill` with the slice's memory, once, and notes that it has changed.
  virtual void change(const Slice& slice,
                      const std::function<void(std::span<std::byte>)>& fill) = 0;
};

}  // namespace lockstep
