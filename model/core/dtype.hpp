#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/core/units.hpp"

namespace lockstep {

/// Floating types first.
enum class DType : uint8_t { fp64, fp32, bf16, fp16, int64, int32, uint8 };
inline constexpr int dtype_count = 7;

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
    case DType::int64: return 8;
    case DType::fp32:
    case DType::int32: return 4;
    case DType::bf16:
    case DType::fp16: return 2;
    case DType::uint8: return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) { return dtype < DType::int64; }

std::string_view name_of(DType dtype);
/// "fp64 fp32 bf16 fp16 int64 int32 uint8 bool" (bool is carried as uint8); nothing for other
/// names.
std::optional<DType> dtype_named(std::string_view name);

/// Round to nearest, ties to even, as the hardware does.
uint16_t bf16_from(float value);
float float_from_bf16(uint16_t bits);
uint16_t fp16_from(float value);
float float_from_fp16(uint16_t bits);

/// Truncated towards zero, and kept within int64; NaN is 0.
int64_t whole_number(double value);

}  // namespace lockstep
