#include "model/network/arithmetic/min_max_uint8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "model/core/ensure.hpp"
#include "model/core/numbers.hpp"

namespace lockstep {

namespace {

constexpr int64_t header_bytes = 32;
constexpr int64_t alignment = 32;

int64_t chunk_bytes(int64_t elements) {
  return header_bytes + (elements + alignment - 1) / alignment * alignment;
}

template <class Number>
struct Levels {
  Levels(Number smallest, Number largest)
      : scale(255 / (largest - smallest + static_cast<Number>(1e-7F))),
        upper(std::rint(largest * scale)),
        lower(upper - 255) {}
  uint8_t byte_of(Number number) const {
    const Number level = std::fmin(std::rint(number * scale), upper) - lower;
    return std::isnan(level) ? 0 : static_cast<uint8_t>(std::clamp<Number>(level, 0, 255));
  }
  Number number_of(int64_t byte) const { return (static_cast<Number>(byte) + lower) / scale; }

  Number scale;
  Number upper;
  Number lower;
};

template <class Number>
struct ChunkRange {
  Number smallest;
  Number largest;
};

template <class Number>
ChunkRange<Number> range_of(std::span<const Number> numbers) {
  ChunkRange<Number> range{numbers.front(), numbers.front()};
  for (const Number number : numbers) {
    if (std::isnan(number)) {
      return {number, number};
    }
    range.smallest = std::min(range.smallest, number);
    range.largest = std::max(range.largest, number);
  }
  return range;
}

template <class Number>
void compress_chunks(const Values& numbers, int64_t chunks, Values& compressed) {
  const std::vector<Number> all = numbers_of<Number>(numbers);
  const int64_t elements = numbers.size() / chunks;
  for (int64_t chunk = 0; chunk < chunks && elements > 0; ++chunk) {
    const std::span<const Number> own = std::span<const Number>(all).subspan(
        static_cast<size_t>(chunk * elements), static_cast<size_t>(elements));
    const ChunkRange<Number> range = range_of(own);
    const Values header = Values::of(numbers.dtype(), {range.smallest, range.largest});
    const auto to = compressed.bytes().subspan(static_cast<size_t>(chunk * chunk_bytes(elements)));
    std::ranges::copy(header.bytes(), to.begin());
    const Levels<Number> levels(range.smallest, range.largest);
    for (size_t i = 0; i < own.size(); ++i) {
      to[static_cast<size_t>(header_bytes) + i] = static_cast<std::byte>(levels.byte_of(own[i]));
    }
  }
}

template <class Number>
void decompress_chunks(const Values& compressed, int64_t chunks, Values& numbers) {
  const int64_t elements = numbers.size() / chunks;
  for (int64_t chunk = 0; chunk < chunks && elements > 0; ++chunk) {
    const int64_t begin = chunk * chunk_bytes(elements);
    Values header(numbers.dtype(), 2);
    std::ranges::copy(compressed.bytes().subspan(static_cast<size_t>(begin), header.bytes().size()),
                      header.bytes().begin());
    const Levels<Number> levels(static_cast<Number>(header.number(0)),
                                static_cast<Number>(header.number(1)));
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t byte = compressed.integer(begin + header_bytes + i);
      numbers.set(chunk * elements + i, static_cast<double>(levels.number_of(byte)));
    }
  }
}

}  // namespace

int64_t compressed_bytes(int64_t elements, int64_t chunks) {
  ensure(chunks > 0 && elements % chunks == 0, "chunks are equal");
  return chunks * chunk_bytes(elements / chunks);
}

Values compress_min_max(const Values& numbers, int64_t chunks) {
  Values compressed(DType::uint8, compressed_bytes(numbers.size(), chunks));
  if (numbers.dtype() == DType::fp64) {
    compress_chunks<double>(numbers, chunks, compressed);
  } else {
    compress_chunks<float>(numbers, chunks, compressed);
  }
  return compressed;
}

Values decompress_min_max(const Values& compressed, DType dtype, int64_t elements, int64_t chunks) {
  ensure(compressed.size() == compressed_bytes(elements, chunks), "all bytes of the numbers");
  Values numbers(dtype, elements);
  if (dtype == DType::fp64) {
    decompress_chunks<double>(compressed, chunks, numbers);
  } else {
    decompress_chunks<float>(compressed, chunks, numbers);
  }
  return numbers;
}

double compression_error(const Values& numbers, const Values& decoded) {
  double largest = 0;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    const double difference = std::abs(numbers.number(i) - decoded.number(i));
    if (std::isnan(difference)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace lockstep
