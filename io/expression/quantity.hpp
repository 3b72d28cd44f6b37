#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "model/core/units.hpp"
#include "model/expression/unit.hpp"

namespace lockstep {

inline bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Why a text is no quantity, and what to write.
struct QuantityError {
  std::string message;
  std::string remedy;
};

// A number and a unit of model/expression/unit.hpp, with or without white space between; `0` alone
// is legal for any. Fractions are rounded to the nearest whole count. Negative numbers, nan and inf
// are errors, and so is what does not fit in 64 bits.
std::variant<AnyQuantity, QuantityError> parse_quantity(std::string_view text, QuantityKind kind);
std::variant<Time, QuantityError> parse_time(std::string_view text);
std::variant<Bytes, QuantityError> parse_bytes(std::string_view text);
/// `Gb/s` counts bits, `GB/s` bytes.
std::variant<BytesPerSecond, QuantityError> parse_rate(std::string_view text);
std::variant<Flops, QuantityError> parse_flops(std::string_view text);
std::variant<FlopsPerSecond, QuantityError> parse_flops_rate(std::string_view text);
/// As a fraction: `12.5 %` is 0.125.
std::variant<double, QuantityError> parse_percent(std::string_view text);

/// A number as it was written: digits, `_` between digits, fraction, exponent.
struct DecimalText {
  std::string digits;  ///< without `_`, as std::from_chars reads it
  size_t length = 0;   ///< of the source text, `_` included
  bool has_fraction = false;
  bool has_exponent = false;
};
/// The number at the begin of `text`, no sign; nothing if there is none. Misplaced `_`, a leading
/// zero and a point without digits are errors.
std::variant<std::optional<DecimalText>, QuantityError> read_decimal(std::string_view text);
/// number * unit, exactly, then rounded to the nearest count.
std::variant<int64_t, QuantityError> count_of(const DecimalText& number, const Unit& unit);
/// Length of the longest unit spelling, legal or not, at the begin of `text`: letters, then
/// perhaps `/s`.
size_t unit_length(std::string_view text);
/// For a spelling that is not a unit (of that kind, if one is given): says what it is or which unit
/// is nearest.
QuantityError unknown_unit(std::string_view spelling, std::optional<QuantityKind> kind);

}  // namespace lockstep
