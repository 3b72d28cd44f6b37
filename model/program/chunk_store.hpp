#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace lockstep {

/// Where full chunks go when a journal grows beyond its bound. Implemented outside the model. Used
/// from one thread at a time.
class ChunkStore {
 public:
  virtual ~ChunkStore() = default;
  /// Keeps the bytes and returns a number by which `load` finds them. Nothing: they could not be
  /// kept, and the journal continues in memory. Never throws: a program of a rank would be blamed.
  virtual std::optional<uint64_t> save(std::span<const std::byte> bytes) = 0;
  /// Gives back the bytes of one `save`, as many as there were. May throw.
  virtual void load(uint64_t number, std::span<std::byte> bytes) = 0;
};

}  // namespace lockstep
