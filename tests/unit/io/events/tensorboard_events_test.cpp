// Records and messages of TensorBoard, taken apart by a reader that knows only their format.
#include "io/events/tensorboard_events.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>

using namespace lockstep;

namespace tensorboard_events_test {

namespace {

// Division by the polynomial 0x1EDC6F41 bit after bit, without a table.
uint32_t checksum_by_division(const std::string& bytes) {
  const auto reversed = [](uint32_t value) {
    uint32_t result = 0;
    for (int bit = 0; bit < 32; ++bit) {
      result |= ((value >> bit) & 1u) << (31 - bit);
    }
    return result;
  };
  uint32_t remainder = 0xFFFFFFFF;
  for (const char byte : bytes) {
    remainder ^= reversed(static_cast<uint8_t>(byte));
    for (int bit = 0; bit < 8; ++bit) {
      const bool carries = (remainder & 0x80000000u) != 0;
      remainder = (remainder << 1) ^ (carries ? 0x1EDC6F41u : 0);
    }
  }
  return ~reversed(remainder);
}

uint64_t number_at(const std::string& bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t byte = 0; byte < size; ++byte) {
    number |= static_cast<uint64_t>(static_cast<uint8_t>(bytes.at(at + byte))) << (8 * byte);
  }
  return number;
}

uint32_t unmasked(uint64_t masked) {
  const auto rotated = static_cast<uint32_t>(masked) - 0xA282EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

// Fields of a message by number: numbers as they are, bytes as text.
struct Fields {
  std::map<uint64_t, uint64_t> numbers;
  std::map<uint64_t, std::string> bytes;
};

Fields fields_of(const std::string& message) {
  Fields fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    switch (key & 7) {
      case 0: fields.numbers[key >> 3] = varint(); break;
      case 1:
        fields.numbers[key >> 3] = number_at(message, at, 8);
        at += 8;
        break;
      case 5:
        fields.numbers[key >> 3] = number_at(message, at, 4);
        at += 4;
        break;
      default: {
        const uint64_t size = varint();
        fields.bytes[key >> 3] = message.substr(at, size);
        at += size;
      }
    }
  }
  return fields;
}

}  // namespace

TEST_CASE("a record is its length and its bytes, each with its checksum") {
  for (const std::string& bytes : {std::string(), std::string("a"), std::string(300, 'x')}) {
    const std::string record = tfrecord(bytes);
    REQUIRE(record.size() == 8 + 4 + bytes.size() + 4);
    CHECK(number_at(record, 0, 8) == bytes.size());
    CHECK(unmasked(number_at(record, 8, 4)) == checksum_by_division(record.substr(0, 8)));
    CHECK(record.substr(12, bytes.size()) == bytes);
    CHECK(unmasked(number_at(record, 12 + bytes.size(), 4)) == checksum_by_division(bytes));
  }
}

TEST_CASE("a scalar is an event with time, step, tag and value") {
  const Fields event = fields_of(scalar_event(12.5, 300, "train_loss", 0.25f));
  CHECK(std::bit_cast<double>(event.numbers.at(1)) == 12.5);
  CHECK(event.numbers.at(2) == 300);
  const Fields summary = fields_of(event.bytes.at(5));
  const Fields value = fields_of(summary.bytes.at(1));
  CHECK(value.bytes.at(1) == "train_loss");
  CHECK(std::bit_cast<float>(static_cast<uint32_t>(value.numbers.at(2))) == 0.25f);
}

TEST_CASE("a file begins with its version") {
  const Fields event = fields_of(version_event(0));
  CHECK(event.bytes.at(3) == "brain.Event:2");
}

}  // namespace tensorboard_events_test
