#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/core/ids.hpp"

namespace lockstep {

/// The purpose of a buffer; memory is accounted by purpose.
enum class Purpose : uint8_t {
  parameter,
  gradient,
  optimizer_state,
  activation,
  communication,  ///< DDP buckets, staging of collectives
  workspace,
  input,
  metric,    ///< logged values, metric states, decisions: always carries values
  gathered,  ///< whole parameters of which ranks store parts, while they are used
};
inline constexpr int purpose_count = 9;
std::string_view name_of(Purpose purpose);

/// Bytes held, by purpose.
using MemoryByPurpose = std::array<Bytes, purpose_count>;

struct BufferSpec {
  DType dtype = DType::fp32;
  Purpose purpose = Purpose::workspace;
  DeviceId device{};
  int64_t elements = 0;
  uint8_t home_queue = queue::compute;  ///< of the device: the stream on which it was allocated
};

/// A window of one buffer: elements [begin, begin + elements) of type dtype. What operations read
/// and write. A bare program has no buffers and gives only a size: `Slice::of_size`.
struct Slice {
  BufferId buffer = no_buffer;
  DType dtype = DType::uint8;
  int64_t begin = 0;
  int64_t elements = 0;

  static constexpr Slice of_size(Bytes bytes) {
    return {no_buffer, DType::uint8, 0, bytes.count()};
  }
  static constexpr Slice of_size(DType dtype, int64_t elements) {
    return {no_buffer, dtype, 0, elements};
  }
  constexpr Bytes bytes() const { return Bytes(size_of(dtype)) * elements; }
  /// Elements [from, from + count) of this slice.
  constexpr Slice part(int64_t from, int64_t count) const {
    return {buffer, dtype, begin + from, count};
  }
  constexpr bool overlaps(const Slice& other) const {
    return buffer == other.buffer && buffer != no_buffer && begin < other.begin + other.elements &&
           other.begin < begin + elements;
  }
  constexpr bool operator==(const Slice&) const = default;
};

}  // namespace lockstep
