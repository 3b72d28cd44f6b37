#include "model/program/buffer_table.hpp"

#include "model/core/ensure.hpp"

namespace lockstep {

BufferId BufferTable::allocate(const BufferSpec& spec) {
  const Bytes bytes = Bytes(size_of(spec.dtype)) * spec.elements;
  DeviceMemory& device =
      memory_
          .try_emplace(
              spec.device,
              DeviceMemory{spec.device == host_device ? Bytes::max() : capacity_, {}, {}, {}, {}})
          .first->second;
  if (device.capacity - device.held < bytes) {
    throw OutOfMemory(no_site, bytes, device.held, device.capacity);
  }
  device.held += bytes;
  device.held_by_purpose[static_cast<size_t>(spec.purpose)] += bytes;
  if (device.held > device.peak) {
    device.peak = device.held;
    device.peak_by_purpose = device.held_by_purpose;
  }
  const bool valued = numerics_ || spec.purpose == Purpose::metric;
  const BufferId buffer{++allocated_};
  entries_.emplace(buffer.value,
                   Entry{spec, valued ? Values(spec.dtype, spec.elements) : Values(), false, 0});
  return buffer;
}

void BufferTable::release(BufferId buffer) {
  Entry& released = entry(buffer);
  ensure(!released.released, "a buffer is released once");
  released.released = true;
  const Bytes bytes = Bytes(size_of(released.spec.dtype)) * released.spec.elements;
  DeviceMemory& device = memory_.at(released.spec.device);
  device.held -= bytes;
  device.held_by_purpose[static_cast<size_t>(released.spec.purpose)] -= bytes;
  if (released.holders == 0) {
    entries_.erase(buffer.value);
  }
}

void BufferTable::hold(std::span<const Slice> operands) {
  for (const Slice& operand : operands) {
    if (operand.buffer != no_buffer) {
      ++entry(operand.buffer).holders;
    }
  }
}

void BufferTable::let_go(std::span<const Slice> operands) {
  for (const Slice& operand : operands) {
    if (operand.buffer == no_buffer) {
      continue;
    }
    Entry& held = entry(operand.buffer);
    if (--held.holders == 0 && held.released) {
      entries_.erase(operand.buffer.value);
    }
  }
}

const BufferTable::Entry& BufferTable::entry(BufferId buffer) const {
  const auto found = entries_.find(buffer.value);
  ensure(found != entries_.end(), "a known buffer, in use or just released");
  return found->second;
}

BufferTable::Entry& BufferTable::entry(BufferId buffer) {
  const auto found = entries_.find(buffer.value);
  ensure(found != entries_.end(), "a known buffer, in use or just released");
  return found->second;
}

bool BufferTable::carries_values(BufferId buffer) const {
  return buffer != no_buffer && !entry(buffer).values.empty();
}

bool BufferTable::released(BufferId buffer) const { return entry(buffer).released; }

const BufferSpec& BufferTable::spec(BufferId buffer) const { return entry(buffer).spec; }

Values BufferTable::load(const Slice& from) const {
  const Entry& found = entry(from.buffer);
  ensure(from.begin >= 0 && from.elements >= 0 && from.begin + from.elements <= found.spec.elements,
         "a slice within its buffer");
  return found.values.empty() ? Values() : found.values.slice(from.begin, from.elements);
}

void BufferTable::store(const Slice& to, const Values& values) {
  const Entry& found = entry(to.buffer);
  if (found.values.empty() || values.empty()) {
    return;
  }
  entry(to.buffer).values.assign(to.begin, values);
}

}  // namespace lockstep
