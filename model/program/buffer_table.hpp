#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/core/ensure.hpp"
#include "model/core/failure.hpp"
#include "model/core/value_budget.hpp"
#include "model/core/values.hpp"
#include "model/program/numbered_entries.hpp"
#include "model/program/shared_values.hpp"
#include "model/program/value_store.hpp"

namespace lockstep {

/// How much a device holds, now and at most.
struct DeviceMemory {
  Bytes capacity = Bytes::max();
  Bytes held{};
  Bytes peak{};
  MemoryByPurpose held_by_purpose{};
  MemoryByPurpose peak_by_purpose{};  ///< at the moment of the peak
  BufferId peak_buffer = no_buffer;   ///< with whose allocation it was first reached
};

/// The buffers of one rank, with their values where they carry any. Every world keeps one; not
/// thread-safe.
class BufferTable {
 public:
  /// `numerics`: parameters, gradients and activations carry values; metric buffers always do.
  /// `budget`: what values here count against; null: nothing. `elsewhere`: where values are kept,
  /// instead of here; it outlives the table.
  BufferTable(bool numerics, Bytes capacity_of_each_device,
              std::shared_ptr<ValueBudget> budget = nullptr, ValueStore* elsewhere = nullptr)
      : numerics_(numerics),
        capacity_(capacity_of_each_device),
        budget_(std::move(budget)),
        elsewhere_(elsewhere) {}

  /// Throws OutOfMemory.
  BufferId allocate(const BufferSpec& spec);
  /// Accounted at once; what is known of the buffer, its values too, stays as long as an operation
  /// in flight holds it.
  void release(BufferId buffer);
  /// A submitted operation that outlives its submission holds its operands until it has ended.
  void hold(std::span<const Slice> operands);
  void let_go(std::span<const Slice> operands);
  /// Buffers that are known: in use, or released and held.
  size_t kept() const { return entries_.size(); }
  bool knows(BufferId buffer) const { return entries_.find(buffer.value) != nullptr; }

  bool carries_values(BufferId buffer) const;
  bool released(BufferId buffer) const;
  const BufferSpec& spec(BufferId buffer) const;

  /// The slice must lie within the buffer; empty when it carries no values.
  Values load(const Slice& from) const;
  /// The same, without a copy where the slice is the whole buffer.
  SharedValues share(const Slice& from) const;
  /// Does nothing when the buffer carries no values. Released buffers are written to no more. Like
  /// all that makes values, throws ValueBudgetExceeded.
  void store(const Slice& to, const Values& values);
  /// The same; takes no copy where they are the whole buffer, until somebody writes to it.
  void store_shared(const Slice& to, const SharedValues& values);

  const std::map<DeviceId, DeviceMemory>& memory() const { return memory_; }

 private:
  struct Entry {
    BufferSpec spec;
    /// Null: zeros, or kept elsewhere. Changed in place only where nobody else holds it.
    std::shared_ptr<Values> values;
    bool carries_values = false;
    bool released = false;
    int32_t holders = 0;
  };
  const Entry& entry(BufferId buffer) const { return known(entries_.find(buffer.value)); }
  Entry& entry(BufferId buffer) { return known(entries_.find(buffer.value)); }
  static Entry& known(Entry* entry) {
    ensure(entry != nullptr, "a known buffer, in use or just released");
    return *entry;
  }
  void forget(BufferId buffer);
  Values& own_values(Entry& entry);

  bool numerics_;
  Bytes capacity_;
  std::shared_ptr<ValueBudget> budget_;
  ValueStore* elsewhere_;
  uint32_t allocated_ = 0;
  NumberedEntries<Entry> entries_;  ///< by BufferId
  std::map<DeviceId, DeviceMemory> memory_;
};

}  // namespace lockstep
