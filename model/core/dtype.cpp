#include "model/core/dtype.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::fp64: return "fp64";
    case DType::fp32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::fp16: return "fp16";
    case DType::int64: return "int64";
    case DType::int32: return "int32";
    case DType::uint8: return "uint8";
  }
  return "?";
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16, DType::int64,
                            DType::int32, DType::uint8}) {
    if (name == name_of(dtype)) {
      return dtype;
    }
  }
  return name == "bool" ? std::optional(DType::uint8) : std::nullopt;
}

uint16_t bf16_from(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  }
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>(bits >> 16);
}

int64_t whole_number(double value) {
  constexpr double limit = 9223372036854774784.0;  // the largest double below 2^63
  if (std::isnan(value)) {
    return 0;
  }
  return static_cast<int64_t>(std::clamp(value, -9223372036854775808.0, limit));
}

float float_from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t fp16_from(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | 0x7e00u);
  }
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0F) {  // half-way between the largest finite number and the next
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (magnitude < 6.103515625e-05F) {  // below 2^-14: subnormal, a multiple of 2^-24
    const float units = magnitude * 16777216.0F;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyintf(units)));
  }
  uint32_t rounded = std::bit_cast<uint32_t>(magnitude);
  rounded += 0xfffu + ((rounded >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float float_from_fp16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  float magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = mantissa == 0 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

}  // namespace lockstep
