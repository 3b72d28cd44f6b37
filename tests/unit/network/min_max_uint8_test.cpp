// Bagua's codec: bytes worked out by hand, sizes, and how far it may be off.
#include "model/network/arithmetic/min_max_uint8.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "model/core/random.hpp"

using namespace lockstep;

namespace min_max_uint8_test {

namespace {

std::vector<int64_t> bytes_of(const Values& compressed, int64_t from, int64_t count) {
  std::vector<int64_t> bytes;
  for (int64_t i = from; i < from + count; ++i) {
    bytes.push_back(compressed.integer(i));
  }
  return bytes;
}

using Bytes8 = std::vector<int64_t>;

Values decoded(const Values& numbers, int64_t chunks) {
  return decompress_min_max(compress_min_max(numbers, chunks), numbers.dtype(), numbers.size(),
                            chunks);
}

}  // namespace

// In exact numbers the 1e-7 makes the scale 127.49999 and upper 127.
TEST_CASE("numbers become bytes, and these numbers again") {
  const Values numbers = Values::of(DType::fp64, {-1, -0.5, 0, 0.25, 1});
  const Values compressed = compress_min_max(numbers, 1);
  CHECK(compressed.dtype() == DType::uint8);
  CHECK(bytes_of(compressed, 32, 5) == Bytes8{1, 64, 128, 160, 255});
  const Values back = decoded(numbers, 1);
  const double expected[] = {-0.99608, -0.50196, 0, 0.25098, 0.99608};
  for (int64_t i = 0; i < 5; ++i) {
    CHECK(back.number(i) == Approx(expected[i]).margin(5e-6));
  }
  CHECK(bytes_of(compress_min_max(Values::of(DType::fp32, {0.1, 0.2, 0.3}), 1), 32, 3) ==
        Bytes8{0, 128, 255});
}

// In fp32, 2 + 1e-7 is 2. The scale is 127.5, and upper the even neighbour of 127.5: 128. So lower
// is -127; -1 becomes -128 + 127, below 0, and comes back as -127 / 127.5.
TEST_CASE("in fp32 a range swallows the 1e-7, and upper may be rounded up") {
  const Values numbers = Values::of(DType::fp32, {-1, -0.5, 0, 0.25, 1});
  CHECK(bytes_of(compress_min_max(numbers, 1), 32, 5) == Bytes8{0, 63, 127, 159, 255});
  const Values back = decoded(numbers, 1);
  CHECK(back.number(0) == Approx(-127 / 127.5).epsilon(1e-6));
  CHECK(back.number(4) == Approx(128 / 127.5).epsilon(1e-6));
}

// The range of 255 makes the scale 1 and lower 0: bytes are the rounded numbers themselves.
TEST_CASE("halves go to the even byte") {
  const Values numbers = Values::of(DType::fp32, {0, 0.5, 1.5, 2.5, 3.5, 255});
  CHECK(bytes_of(compress_min_max(numbers, 1), 32, 6) == Bytes8{0, 0, 2, 2, 4, 255});
}

TEST_CASE("a chunk begins with its smallest and largest number, in their type, and 32 bytes") {
  for (const DType dtype : {DType::fp32, DType::fp16}) {
    const Values numbers = Values::of(dtype, {3, -2, 1, 8, 5, 6});
    const Values compressed = compress_min_max(numbers, 2);
    REQUIRE(compressed.size() == 2 * 64);
    for (const auto& [chunk, smallest, largest] :
         {std::tuple(int64_t{0}, -2.0, 3.0), std::tuple(int64_t{1}, 5.0, 8.0)}) {
      Values header(dtype, 2);
      for (size_t i = 0; i < header.bytes().size(); ++i) {
        header.bytes()[i] = compressed.bytes()[static_cast<size_t>(chunk * 64) + i];
      }
      CHECK(header == Values::of(dtype, {smallest, largest}));
    }
  }
}

TEST_CASE("compressed bytes are those of whole rows of 32, and a row for each chunk") {
  CHECK(compressed_bytes(1024, 4) == 1152);
  CHECK(compressed_bytes(1000, 4) == 1152);
  CHECK(compressed_bytes(1024, 1) == 1056);
  CHECK(compressed_bytes(4, 4) == 256);
  CHECK(compressed_bytes(0, 4) == 128);
  CHECK(compress_min_max(Values(DType::fp32, 1000), 4).size() == 1152);
}

TEST_CASE("no number is off by more than a level of its chunk") {
  for (const int64_t chunks : {1, 4}) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Values numbers(DType::fp32, 64);
      for (int64_t i = 0; i < numbers.size(); ++i) {
        const double unit =
            static_cast<double>(random_key(seed, static_cast<uint64_t>(i)) % 100'000) / 50'000 - 1;
        numbers.set(i, unit * std::pow(10, static_cast<double>(seed % 5) - 2));
      }
      const Values back = decoded(numbers, chunks);
      const int64_t of_chunk = numbers.size() / chunks;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        double smallest = std::numeric_limits<double>::infinity();
        double largest = -smallest;
        for (int64_t i = chunk * of_chunk; i < (chunk + 1) * of_chunk; ++i) {
          smallest = std::min(smallest, numbers.number(i));
          largest = std::max(largest, numbers.number(i));
        }
        const Values own = numbers.slice(chunk * of_chunk, of_chunk);
        const double error = compression_error(own, back.slice(chunk * of_chunk, of_chunk));
        CHECK(error > 0);
        CHECK(error <= (largest - smallest) / 255 * (1 + 1e-5));
      }
    }
  }
}

TEST_CASE("zeros, and chunks of one number, come back as they were") {
  CHECK(decoded(Values(DType::fp32, 8), 2) == Values(DType::fp32, 8));
  for (const double number : {1.0, -3.5, 1e-3, 1234.5}) {
    const Values numbers = Values::of(DType::fp32, {number, number});
    CHECK(decoded(numbers, 2).number(0) == Approx(number).epsilon(1e-6));
  }
}

TEST_CASE("a chunk with a number that is not finite is lost, another is not") {
  const double infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double number : {infinite, nan}) {
    const Values numbers = Values::of(DType::fp32, {1, number, 0, 255});
    const Values back = decoded(numbers, 2);
    CHECK(std::isnan(back.number(0)));
    CHECK(std::isnan(back.number(1)));
    CHECK(back.slice(2, 2) == numbers.slice(2, 2));
    CHECK(std::isnan(compression_error(numbers, back)));
  }
}

}  // namespace min_max_uint8_test
