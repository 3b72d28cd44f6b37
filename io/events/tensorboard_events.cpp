// Messages are encoded by hand: two kinds of them with seven fields in all. Field numbers are those
// of tensorflow/core/util/event.proto and framework/summary.proto; records are those of
// tensorflow/core/lib/io/record_writer.h.
#include "io/events/tensorboard_events.hpp"

#include <bit>

#include "io/file/checksum.hpp"

namespace lockstep {

namespace {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>((value & 0x7F) | 0x80);
  }
  return bytes + static_cast<char>(value);
}

std::string little_endian(uint64_t value, int size) {
  std::string bytes;
  for (int byte = 0; byte < size; ++byte) {
    bytes += static_cast<char>((value >> (8 * byte)) & 0xFF);
  }
  return bytes;
}

std::string key_of(uint32_t field, WireType type) {
  return varint((field << 3) | static_cast<uint32_t>(type));
}

std::string bytes_field(uint32_t field, std::string_view bytes) {
  return key_of(field, WireType::bytes) + varint(bytes.size()) + std::string(bytes);
}

// Event.wall_time
std::string wall_time_field(double seconds) {
  return key_of(1, WireType::fixed64) + little_endian(std::bit_cast<uint64_t>(seconds), 8);
}

// As TensorFlow's records store a CRC: turned, and a constant added.
uint32_t masked_checksum(std::string_view bytes) {
  const uint32_t checksum = crc32c(std::as_bytes(std::span(bytes)));
  return ((checksum >> 15) | (checksum << 17)) + 0xA282EAD8;
}

}  // namespace

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(bytes.size(), 8);
  return length + little_endian(masked_checksum(length), 4) + std::string(bytes) +
         little_endian(masked_checksum(bytes), 4);
}

std::string version_event(double wall_time_s) {
  return wall_time_field(wall_time_s) + bytes_field(3, "brain.Event:2");  // Event.file_version
}

std::string scalar_event(double wall_time_s, int64_t step, std::string_view tag, float value) {
  const std::string summary_value = bytes_field(1, tag) +
                                    key_of(2, WireType::fixed32) +  // Value.tag, Value.simple_value
                                    little_endian(std::bit_cast<uint32_t>(value), 4);
  return wall_time_field(wall_time_s) + key_of(2, WireType::varint) +  // Event.step
         varint(static_cast<uint64_t>(step)) +
         bytes_field(5, bytes_field(1, summary_value));  // Event.summary, Summary.value
}

}  // namespace lockstep
