#include "model/core/values.hpp"

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
  return whole_number(number(index));
}

void Values::set(int64_t index, double value) {
  ensure(index >= 0 && index < size(), "index within the values");
  switch (dtype_) {
    case DType::fp64: store(bytes_, index, value); break;
    case DType::fp32: store(bytes_, index, static_cast<float>(value)); break;
    case DType::bf16: store(bytes_, index, bf16_from(static_cast<float>(value))); break;
    case DType::fp16: store(bytes_, index, fp16_from(static_cast<float>(value))); break;
    case DType::int64: store(bytes_, index, whole_number(value)); break;
    case DType::int32: store(bytes_, index, static_cast<int32_t>(whole_number(value))); break;
    case DType::uint8: store(bytes_, index, static_cast<uint8_t>(whole_number(value))); break;
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

}  // namespace lockstep
