#include "model/program/packed_completions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace lockstep {

namespace {

// Differences wrap around as unsigned numbers do, so that any completion comes back as it was.
constexpr size_t fields = 4;
using Numbers = std::array<uint64_t, fields>;

struct Header {
  Numbers least{};
  std::array<uint8_t, fields> width{};  ///< in bytes
  uint8_t entry = 0;                    ///< sum of the widths
};

uint64_t bits_of(Time time) { return static_cast<uint64_t>(time.count()); }
Time time_of(uint64_t bits) { return Time(static_cast<int64_t>(bits)); }

Numbers numbers_of(const Completion& completion) {
  const uint64_t issue = bits_of(completion.issue);
  const uint64_t start = bits_of(completion.start);
  const uint64_t finish = bits_of(completion.finish);
  return {issue, start - issue, finish - start,
          uint64_t{completion.source.value} << 8 | static_cast<uint64_t>(completion.outcome)};
}

Completion completion_of(const Numbers& numbers) {
  const uint64_t start = numbers[0] + numbers[1];
  return {time_of(numbers[0]), time_of(start), time_of(start + numbers[2]),
          static_cast<Outcome>(numbers[3] & 0xff), RankId{static_cast<uint32_t>(numbers[3] >> 8)}};
}

Header header_of(std::span<const Completion> completions) {
  Header header;
  Numbers greatest{};
  header.least.fill(~uint64_t{0});
  for (const Completion& completion : completions) {
    const Numbers numbers = numbers_of(completion);
    for (size_t field = 0; field < fields; ++field) {
      header.least[field] = std::min(header.least[field], numbers[field]);
      greatest[field] = std::max(greatest[field], numbers[field]);
    }
  }
  for (size_t field = 0; field < fields; ++field) {
    const auto bits = std::bit_width(greatest[field] - header.least[field]);
    header.width[field] = static_cast<uint8_t>((bits + 7) / 8);
    header.entry = static_cast<uint8_t>(header.entry + header.width[field]);
  }
  return header;
}

}  // namespace

PackedCompletions packed(std::span<const Completion> completions) {
  const Header header = header_of(completions);
  const size_t size = sizeof(Header) + header.entry * completions.size();
  PackedCompletions result{std::shared_ptr<std::byte[]>(new std::byte[size]),
                           static_cast<int64_t>(size)};
  std::byte* to = result.bytes.get();
  std::memcpy(to, &header, sizeof(Header));
  to += sizeof(Header);
  for (const Completion& completion : completions) {
    const Numbers numbers = numbers_of(completion);
    for (size_t field = 0; field < fields; ++field) {
      uint64_t left = numbers[field] - header.least[field];
      for (uint8_t byte = 0; byte < header.width[field]; ++byte, left >>= 8) {
        *to++ = static_cast<std::byte>(left & 0xff);
      }
    }
  }
  return result;
}

Completion completion_in(const std::byte* bytes, size_t index) {
  Header header;
  std::memcpy(&header, bytes, sizeof(Header));
  const std::byte* from = bytes + sizeof(Header) + header.entry * index;
  Numbers numbers = header.least;
  for (size_t field = 0; field < fields; ++field) {
    for (uint8_t byte = 0; byte < header.width[field]; ++byte) {
      numbers[field] += static_cast<uint64_t>(*from++) << (8 * byte);
    }
  }
  return completion_of(numbers);
}

}  // namespace lockstep
