#include "model/core/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

template <class T>
T load(std::span<const std::byte> bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::span<std::byte> bytes, int64_t index, T value) {
  std::memcpy(bytes.data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

template <class T>
T combine(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::avg: return static_cast<T>(a + b);
    case Reduction::product: return static_cast<T>(a * b);
    case Reduction::min: return std::min(a, b);
    case Reduction::max: return std::max(a, b);
  }
  return a;
}

// Unsigned arithmetic: sums of int64 wrap as they do in the real libraries, and never trap.
int64_t combine_integers(Reduction reduction, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (reduction) {
    case Reduction::sum:
    case Reduction::avg: return static_cast<int64_t>(x + y);
    case Reduction::product: return static_cast<int64_t>(x * y);
    case Reduction::min: return std::min(a, b);
    case Reduction::max: return std::max(a, b);
  }
  return a;
}

int64_t truncated(double value) {
  constexpr double limit = 9223372036854774784.0;  // the largest double below 2^63
  if (std::isnan(value)) {
    return 0;
  }
  return static_cast<int64_t>(std::clamp(value, -9223372036854775808.0, limit));
}

}  // namespace

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::avg: return "avg";
    case Reduction::product: return "product";
    case Reduction::min: return "min";
    case Reduction::max: return "max";
  }
  return "?";
}

std::optional<Reduction> reduction_named(std::string_view name) {
  for (const Reduction reduction :
       {Reduction::sum, Reduction::avg, Reduction::product, Reduction::min, Reduction::max}) {
    if (name == name_of(reduction)) {
      return reduction;
    }
  }
  return std::nullopt;
}

Values::Values(DType dtype, int64_t elements)
    : dtype_(dtype), bytes_(static_cast<size_t>((Bytes(size_of(dtype)) * elements).count())) {}

Values Values::of(DType dtype, std::span<const double> numbers) {
  Values values(dtype, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    values.set(static_cast<int64_t>(i), numbers[i]);
  }
  return values;
}

Values Values::of(DType dtype, std::initializer_list<double> numbers) {
  return of(dtype, std::span<const double>(numbers.begin(), numbers.size()));
}

double Values::number(int64_t index) const {
  ensure(index >= 0 && index < size(), "index within the values");
  switch (dtype_) {
    case DType::fp64: return load<double>(bytes_, index);
    case DType::fp32: return load<float>(bytes_, index);
    case DType::bf16: return float_from_bf16(load<uint16_t>(bytes_, index));
    case DType::fp16: return float_from_fp16(load<uint16_t>(bytes_, index));
    case DType::int64: return static_cast<double>(load<int64_t>(bytes_, index));
    case DType::int32: return load<int32_t>(bytes_, index);
    case DType::uint8: return load<uint8_t>(bytes_, index);
  }
  return 0;
}

int64_t Values::integer(int64_t index) const {
  ensure(index >= 0 && index < size(), "index within the values");
  if (dtype_ == DType::int64) {
    return load<int64_t>(bytes_, index);
  }
  return truncated(number(index));
}

void Values::set(int64_t index, double value) {
  ensure(index >= 0 && index < size(), "index within the values");
  switch (dtype_) {
    case DType::fp64: store(bytes_, index, value); break;
    case DType::fp32: store(bytes_, index, static_cast<float>(value)); break;
    case DType::bf16: store(bytes_, index, bf16_from(static_cast<float>(value))); break;
    case DType::fp16: store(bytes_, index, fp16_from(static_cast<float>(value))); break;
    case DType::int64: store(bytes_, index, truncated(value)); break;
    case DType::int32: store(bytes_, index, static_cast<int32_t>(truncated(value))); break;
    case DType::uint8: store(bytes_, index, static_cast<uint8_t>(truncated(value))); break;
  }
}

void Values::set_integer(int64_t index, int64_t value) {
  if (dtype_ == DType::int64) {
    ensure(index >= 0 && index < size(), "index within the values");
    store(bytes_, index, value);
  } else {
    set(index, static_cast<double>(value));
  }
}

Values Values::slice(int64_t begin, int64_t count) const {
  ensure(begin >= 0 && count >= 0 && begin + count <= size(), "slice within the values");
  Values part(dtype_, count);
  if (count > 0) {
    std::memcpy(part.bytes_.data(), bytes_.data() + begin * size_of(dtype_), part.bytes_.size());
  }
  return part;
}

void Values::assign(int64_t begin, const Values& part) {
  ensure(dtype_ == part.dtype_, "assignment between equal types");
  ensure(begin >= 0 && begin + part.size() <= size(), "assignment within the values");
  if (!part.empty()) {
    std::memcpy(bytes_.data() + begin * size_of(dtype_), part.bytes_.data(), part.bytes_.size());
  }
}

void accumulate(Reduction reduction, Values& accumulator, const Values& contribution) {
  const int64_t count = std::min(accumulator.size(), contribution.size());
  for (int64_t i = 0; i < count; ++i) {
    switch (accumulator.dtype()) {
      case DType::fp64:
        accumulator.set(i, combine(reduction, accumulator.number(i), contribution.number(i)));
        break;
      case DType::fp32:
      case DType::bf16:
      case DType::fp16:
        accumulator.set(i, combine(reduction, static_cast<float>(accumulator.number(i)),
                                   static_cast<float>(contribution.number(i))));
        break;
      case DType::int64:
      case DType::int32:
      case DType::uint8:
        accumulator.set_integer(
            i, combine_integers(reduction, accumulator.integer(i), contribution.integer(i)) &
                   (accumulator.dtype() == DType::uint8 ? 0xff : -1));
        break;
    }
  }
}

void scale(Values& values, double factor) {
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values.dtype() == DType::fp64) {
      values.set(i, values.number(i) * factor);
    } else if (is_floating(values.dtype())) {
      values.set(i, static_cast<float>(values.number(i)) * static_cast<float>(factor));
    } else {
      values.set(i, values.number(i) * factor);
    }
  }
}

void divide(Values& values, int64_t divisor) {
  ensure(divisor != 0, "division by a group's size");
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values.dtype() == DType::fp64) {
      values.set(i, values.number(i) / static_cast<double>(divisor));
    } else if (is_floating(values.dtype())) {
      values.set(i, static_cast<float>(values.number(i)) / static_cast<float>(divisor));
    } else {
      values.set_integer(i, values.integer(i) / divisor);
    }
  }
}

Values reduce(Reduction reduction, AverageOrder order,
              std::span<const Values* const> contributions) {
  ensure(!contributions.empty(), "a reduction has at least one contribution");
  const auto parts = static_cast<int64_t>(contributions.size());
  const bool scaled_first = reduction == Reduction::avg && order == AverageOrder::scale_then_sum &&
                            is_floating(contributions.front()->dtype());
  Values result = *contributions.front();
  if (scaled_first) {
    scale(result, 1.0 / static_cast<double>(parts));
  }
  for (size_t i = 1; i < contributions.size(); ++i) {
    if (scaled_first) {
      Values part = *contributions[i];
      scale(part, 1.0 / static_cast<double>(parts));
      accumulate(reduction, result, part);
    } else {
      accumulate(reduction, result, *contributions[i]);
    }
  }
  if (reduction == Reduction::avg && !scaled_first) {
    divide(result, parts);
  }
  return result;
}

}  // namespace lockstep
