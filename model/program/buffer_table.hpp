#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/core/failure.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// How much a device holds, now and at most.
struct DeviceMemory {
  Bytes capacity = Bytes::max();
  Bytes held{};
  Bytes peak{};
  MemoryByPurpose held_by_purpose{};
  MemoryByPurpose peak_by_purpose{};  ///< at the moment of the peak
};

/// The buffers of one rank, with their values where they carry any. Every world keeps one; not
/// thread-safe.
class BufferTable {
 public:
  /// `numerics`: parameters, gradients and activations carry values; metric buffers always do.
  BufferTable(bool numerics, Bytes capacity_of_each_device)
      : numerics_(numerics), capacity_(capacity_of_each_device) {}

  /// Throws OutOfMemory.
  BufferId allocate(const BufferSpec& spec);
  /// Accounted at once; the values stay for operations that are still in flight, until
  /// `forget_released`.
  void release(BufferId buffer);
  /// For a world to call when none of this rank's operations is in flight.
  void forget_released();

  bool carries_values(BufferId buffer) const;
  bool released(BufferId buffer) const;
  const BufferSpec& spec(BufferId buffer) const;

  /// The slice must lie within the buffer; empty when it carries no values.
  Values load(const Slice& from) const;
  /// Does nothing when the buffer carries no values. Released buffers are written to no more.
  void store(const Slice& to, const Values& values);

  const std::map<DeviceId, DeviceMemory>& memory() const { return memory_; }

 private:
  struct Entry {
    BufferSpec spec;
    Values values;
    bool released = false;
  };
  const Entry& entry(BufferId buffer) const;
  Entry& entry(BufferId buffer);

  bool numerics_;
  Bytes capacity_;
  uint32_t allocated_ = 0;
  std::unordered_map<uint32_t, Entry> entries_;  ///< by BufferId; looked up only, never walked
  std::vector<BufferId> released_;
  std::map<DeviceId, DeviceMemory> memory_;
};

}  // namespace lockstep
