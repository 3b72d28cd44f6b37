// Arithmetic on whole arrays: one loop for each type and operation, which the compiler can put into
// vector instructions. Every sum is rounded to its type as it is stored.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "model/core/ensure.hpp"
#include "model/core/values.hpp"

namespace lockstep {

namespace {

/// How the numbers of a type lie in memory, and in which type they are calculated with: integers
/// without a sign, so that sums wrap as they do in the real libraries, and never trap.
template <class Stored, class Wide>
struct Plain {
  using stored_type = Stored;
  using wide_type = Wide;
  static Wide widen(Stored number) { return static_cast<Wide>(number); }
  static Stored narrow(Wide number) { return static_cast<Stored>(number); }
};
struct Bfloat16 {
  using stored_type = uint16_t;
  using wide_type = float;
  static float widen(uint16_t bits) { return float_from_bf16(bits); }
  static uint16_t narrow(float number) { return bf16_from(number); }
};
struct Float16 {
  using stored_type = uint16_t;
  using wide_type = float;
  static float widen(uint16_t bits) { return float_from_fp16(bits); }
  static uint16_t narrow(float number) { return fp16_from(number); }
};

template <class Call>
void with_numbers(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::fp64: return call(Plain<double, double>());
    case DType::fp32: return call(Plain<float, float>());
    case DType::bf16: return call(Bfloat16());
    case DType::fp16: return call(Float16());
    case DType::int64: return call(Plain<int64_t, int64_t>());
    case DType::int32: return call(Plain<int32_t, int32_t>());
    case DType::uint8: return call(Plain<uint8_t, uint8_t>());
  }
}

template <class Stored>
Stored load(const std::byte* bytes, size_t index) {
  Stored stored;
  std::memcpy(&stored, bytes + index * sizeof(Stored), sizeof(Stored));
  return stored;
}

template <class Stored>
void store(std::byte* bytes, size_t index, Stored stored) {
  std::memcpy(bytes + index * sizeof(Stored), &stored, sizeof(Stored));
}

/// to[i] = operation(to[i]).
template <class Numbers, class Operation>
void change(Numbers, std::span<std::byte> to, const Operation& operation) {
  using Stored = typename Numbers::stored_type;
  for (size_t i = 0; i < to.size() / sizeof(Stored); ++i) {
    const auto number = Numbers::widen(load<Stored>(to.data(), i));
    store(to.data(), i, Numbers::narrow(operation(number)));
  }
}

/// to[i] = operation(to[i], from[i]), over the shorter of the two.
template <class Numbers, class Operation>
void merge(Numbers, std::span<std::byte> to, std::span<const std::byte> from,
           const Operation& operation) {
  using Stored = typename Numbers::stored_type;
  const size_t count = std::min(to.size(), from.size()) / sizeof(Stored);
  for (size_t i = 0; i < count; ++i) {
    const auto a = Numbers::widen(load<Stored>(to.data(), i));
    const auto b = Numbers::widen(load<Stored>(from.data(), i));
    store(to.data(), i, Numbers::narrow(operation(a, b)));
  }
}

template <class Number>
Number sum_of(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    return static_cast<Number>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class Number>
Number product_of(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    return static_cast<Number>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class Number>
Number combined(Reduction reduction, Number a, Number b) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::avg: return sum_of(a, b);
    case Reduction::product: return product_of(a, b);
    case Reduction::min: return std::min(a, b);
    case Reduction::max: return std::max(a, b);
  }
  return a;
}

/// One loop for each reduction, so that none decides within it.
template <class Numbers>
void accumulate_numbers(Numbers numbers, Reduction reduction, std::span<std::byte> to,
                        std::span<const std::byte> from) {
  using Wide = typename Numbers::wide_type;
  const auto with = [&]<Reduction fixed>() {
    merge(numbers, to, from, [](Wide a, Wide b) { return combined(fixed, a, b); });
  };
  switch (reduction) {
    case Reduction::sum:
    case Reduction::avg: return with.template operator()<Reduction::sum>();
    case Reduction::product: return with.template operator()<Reduction::product>();
    case Reduction::min: return with.template operator()<Reduction::min>();
    case Reduction::max: return with.template operator()<Reduction::max>();
  }
}

void accumulate_bytes(DType dtype, Reduction reduction, std::span<std::byte> to,
                      std::span<const std::byte> from) {
  with_numbers(dtype, [&](auto numbers) { accumulate_numbers(numbers, reduction, to, from); });
}

void scale_bytes(DType dtype, std::span<std::byte> to, double factor) {
  with_numbers(dtype, [&](auto numbers) {
    using Wide = typename decltype(numbers)::wide_type;
    if constexpr (std::is_integral_v<Wide>) {
      change(numbers, to, [factor](Wide number) {
        return static_cast<Wide>(whole_number(static_cast<double>(number) * factor));
      });
    } else {
      change(numbers, to, [by = static_cast<Wide>(factor)](Wide number) { return number * by; });
    }
  });
}

void divide_bytes(DType dtype, std::span<std::byte> to, int64_t divisor) {
  with_numbers(dtype, [&](auto numbers) {
    using Wide = typename decltype(numbers)::wide_type;
    if constexpr (std::is_integral_v<Wide>) {
      change(numbers, to, [divisor](Wide number) {
        return static_cast<Wide>(static_cast<int64_t>(number) / divisor);
      });
    } else {
      change(numbers, to, [by = static_cast<Wide>(divisor)](Wide number) { return number / by; });
    }
  });
}

}  // namespace

void accumulate(Reduction reduction, Values& accumulator, const Values& contribution) {
  if (accumulator.dtype() == contribution.dtype()) {
    accumulate_bytes(accumulator.dtype(), reduction, accumulator.bytes(), contribution.bytes());
    return;
  }
  // Numbers of a different type use the accumulator's arithmetic and are rounded with the sum.
  with_numbers(accumulator.dtype(), [&](auto numbers) {
    using Wide = typename decltype(numbers)::wide_type;
    using Stored = typename decltype(numbers)::stored_type;
    const int64_t count = std::min(accumulator.size(), contribution.size());
    for (int64_t i = 0; i < count; ++i) {
      const auto number = std::is_integral_v<Wide> ? static_cast<Wide>(contribution.integer(i))
                                                   : static_cast<Wide>(contribution.number(i));
      const auto a =
          numbers.widen(load<Stored>(accumulator.bytes().data(), static_cast<size_t>(i)));
      store(accumulator.bytes().data(), static_cast<size_t>(i),
            numbers.narrow(combined(reduction, a, number)));
    }
  });
}

void scale(Values& values, double factor) { scale_bytes(values.dtype(), values.bytes(), factor); }

void divide(Values& values, int64_t divisor) {
  ensure(divisor != 0, "division by a group's size");
  divide_bytes(values.dtype(), values.bytes(), divisor);
}

void reduce(DType dtype, const ReductionRule& rule,
            std::span<const std::span<const std::byte>> contributions, std::span<std::byte> to) {
  ensure(!contributions.empty(), "a reduction has at least one contribution");
  const auto parts = static_cast<int64_t>(contributions.size());
  const bool average = rule.reduction == Reduction::avg;
  const bool scaled_first =
      average && rule.order == AverageOrder::scale_then_sum && is_floating(dtype);
  // In blocks that stay in the first cache, so that each number comes from memory once.
  std::array<std::byte, 8192> whole;
  std::array<std::byte, 8192> scaled;
  for (size_t begin = 0; begin < to.size(); begin += whole.size()) {
    const auto block = std::span(whole).first(std::min(whole.size(), to.size() - begin));
    for (size_t i = 0; i < contributions.size(); ++i) {
      auto part = contributions[i].subspan(std::min(begin, contributions[i].size()));
      part = part.first(std::min(part.size(), block.size()));
      if (scaled_first) {
        const auto own = std::span(scaled).first(part.size());
        std::ranges::copy(part, own.begin());
        scale_bytes(dtype, own, 1.0 / static_cast<double>(parts));
        part = own;
      }
      if (i == 0) {
        std::ranges::copy(part, block.begin());
      } else {
        accumulate_bytes(dtype, rule.reduction, block, part);
      }
    }
    if (average && !scaled_first) {
      divide_bytes(dtype, block, parts);
    }
    std::ranges::copy(block, to.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

Values reduce(Reduction reduction, AverageOrder order,
              std::span<const Values* const> contributions) {
  ensure(!contributions.empty(), "a reduction has at least one contribution");
  std::vector<std::span<const std::byte>> parts;
  for (const Values* contribution : contributions) {
    parts.push_back(contribution->bytes());
  }
  Values result(contributions.front()->dtype(), contributions.front()->size());
  reduce(result.dtype(), {reduction, order}, parts, result.bytes());
  return result;
}

}  // namespace lockstep
