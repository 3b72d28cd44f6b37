#include "io/file/checksum.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

using namespace lockstep;

namespace checksum_test {

namespace {

uint32_t checksum_of(const std::vector<uint8_t>& bytes) {
  return crc32c(std::as_bytes(std::span(bytes)));
}

}  // namespace

// RFC 3720, B.4, which lists the checksums' bytes in the order in which they are sent: lowest
// first.
TEST_CASE("the checksums of the examples of RFC 3720 are theirs") {
  CHECK(checksum_of(std::vector<uint8_t>(32, 0x00)) == 0x8a9136aa);
  CHECK(checksum_of(std::vector<uint8_t>(32, 0xff)) == 0x62a8ab43);
  std::vector<uint8_t> rising(32);
  std::iota(rising.begin(), rising.end(), uint8_t{0});
  CHECK(checksum_of(rising) == 0x46dd794e);
  CHECK(checksum_of({rising.rbegin(), rising.rend()}) == 0x113fdb5c);
  const std::vector<uint8_t> read_command = {
      0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
      0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  CHECK(checksum_of(read_command) == 0xd9963a56);
}

TEST_CASE("a checksum goes on where that of the bytes before ended") {
  const std::string text = "a checksum in two parts is that of the whole";
  const auto bytes = std::as_bytes(std::span(text));
  CHECK(crc32c({}) == 0);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    CHECK(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))) == crc32c(bytes));
  }
}

}  // namespace checksum_test
