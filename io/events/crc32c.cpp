#include "io/events/crc32c.hpp"

#include <array>

namespace lockstep {

namespace {

constexpr uint32_t reflected_polynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1) != 0 ? (value >> 1) ^ reflected_polynomial : value >> 1;
    }
    table[byte] = value;
  }
  return table;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = make_table();
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  }
  return crc ^ 0xFFFFFFFF;
}

}  // namespace lockstep
