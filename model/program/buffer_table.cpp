#include "model/program/buffer_table.hpp"

#include <algorithm>

namespace lockstep {

namespace {

Bytes byte_size(DType dtype, int64_t elements) { return Bytes(size_of(dtype)) * elements; }

}  // namespace

BufferId BufferTable::allocate(const BufferSpec& spec) {
  const Bytes bytes = byte_size(spec.dtype, spec.elements);
  const auto [place, fresh] = memory_.try_emplace(spec.device);
  DeviceMemory& device = place->second;
  if (fresh && !is_off_device(spec.device)) {
    device.capacity = capacity_;
  }
  if (device.capacity - device.held < bytes) {
    throw OutOfMemory(no_site, bytes, device.held, device.capacity);
  }
  device.held += bytes;
  device.held_by_purpose[static_cast<size_t>(spec.purpose)] += bytes;
  const BufferId buffer{++allocated_};
  if (device.held > device.peak) {
    device.peak = device.held;
    device.peak_by_purpose = device.held_by_purpose;
    device.peak_buffer = buffer;
  }
  const bool valued = spec.elements > 0 && (numerics_ || spec.purpose == Purpose::metric);
  Entry& fresh_entry = entries_.add(buffer.value);
  fresh_entry.spec = spec;
  fresh_entry.carries_values = valued;
  if (valued && elsewhere_ != nullptr) {
    elsewhere_->add(buffer, spec);
  }
  return buffer;
}

void BufferTable::release(BufferId buffer) {
  Entry& released = entry(buffer);
  ensure(!released.released, "a buffer is released once");
  released.released = true;
  const Bytes bytes = byte_size(released.spec.dtype, released.spec.elements);
  DeviceMemory& device = memory_.at(released.spec.device);
  device.held -= bytes;
  device.held_by_purpose[static_cast<size_t>(released.spec.purpose)] -= bytes;
  if (released.holders == 0) {
    forget(buffer);
  }
}

void BufferTable::forget(BufferId buffer) {
  if (elsewhere_ != nullptr && entry(buffer).carries_values) {
    elsewhere_->remove(buffer);
  }
  entries_.erase(buffer.value);
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
      forget(operand.buffer);
    }
  }
}

bool BufferTable::carries_values(BufferId buffer) const {
  return buffer != no_buffer && entry(buffer).carries_values;
}

bool BufferTable::released(BufferId buffer) const { return entry(buffer).released; }

const BufferSpec& BufferTable::spec(BufferId buffer) const { return entry(buffer).spec; }

Values BufferTable::load(const Slice& from) const {
  const Entry& found = entry(from.buffer);
  ensure(from.begin >= 0 && from.elements >= 0 && from.begin + from.elements <= found.spec.elements,
         "a slice within its buffer");
  if (!found.carries_values) {
    return {};
  }
  if (elsewhere_ == nullptr) {
    return found.values ? found.values->slice(from.begin, from.elements)
                        : Values(found.spec.dtype, from.elements);
  }
  Values values(found.spec.dtype, from.elements);
  std::ranges::copy(elsewhere_->view(from).bytes, values.bytes().begin());
  return values;
}

SharedValues BufferTable::share(const Slice& from) const {
  const Entry& found = entry(from.buffer);
  const bool whole = from.begin == 0 && from.elements == found.spec.elements;
  if (whole && found.values) {
    return found.values;
  }
  return charged(budget_,
                 found.carries_values ? byte_size(found.spec.dtype, from.elements) : Bytes(),
                 [&] { return load(from); });
}

Values& BufferTable::own_values(Entry& entry) {
  const Bytes bytes = byte_size(entry.spec.dtype, entry.spec.elements);
  if (!entry.values) {
    entry.values =
        charged(budget_, bytes, [&] { return Values(entry.spec.dtype, entry.spec.elements); });
  } else if (entry.values.use_count() > 1) {
    entry.values = charged(budget_, bytes, [&] { return *entry.values; });
  }
  return *entry.values;
}

void BufferTable::store_shared(const Slice& to, const SharedValues& values) {
  Entry& found = entry(to.buffer);
  const bool whole =
      to.begin == 0 && values->size() == found.spec.elements && values->dtype() == found.spec.dtype;
  if (whole && found.carries_values && elsewhere_ == nullptr) {
    // Shared values are changed by nobody: own_values() copies them first.
    found.values = std::const_pointer_cast<Values>(values);
  } else {
    store(to, *values);
  }
}

void BufferTable::store(const Slice& to, const Values& values) {
  Entry& found = entry(to.buffer);
  if (!found.carries_values || values.empty()) {
    return;
  }
  if (elsewhere_ == nullptr) {
    own_values(found).assign(to.begin, values);
    return;
  }
  ensure(values.dtype() == found.spec.dtype, "a buffer holds numbers of one type");
  elsewhere_->change(to, [&](auto memory) { std::ranges::copy(values.bytes(), memory.begin()); });
}

}  // namespace lockstep
