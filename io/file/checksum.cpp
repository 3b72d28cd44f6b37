#include "io/file/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace lockstep {

namespace {

constexpr uint32_t polynomial = 0x82f63b78;  // Castagnoli's, bits reversed
constexpr size_t slices = 8;
using Tables = std::array<std::array<uint32_t, 256>, slices>;

// Table n: what a byte does to the checksum n bytes later.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
    }
    tables[0][byte] = rest;
  }
  for (size_t slice = 1; slice < slices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();
static_assert(std::endian::native == std::endian::little);

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t rest = ~before;
  for (; bytes.size() >= slices; bytes = bytes.subspan(slices)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= rest;
    rest = 0;
    for (size_t byte = 0; byte < slices; ++byte) {
      rest ^= tables[slices - 1 - byte][(word >> (8 * byte)) & 0xff];
    }
  }
  for (const std::byte byte : bytes) {
    rest = (rest >> 8) ^ tables[0][(rest ^ static_cast<uint32_t>(byte)) & 0xff];
  }
  return ~rest;
}

}  // namespace lockstep
