#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep {

/// Why a plain scalar is not of the wanted type.
struct ScalarError {
  std::string message;  ///< continues "`key` ..": "takes a bool, not `yes`"
  std::string remedy;
};

/// `true` or `false`, nothing else.
std::variant<bool, ScalarError> parse_bool(std::string_view text);
/// `8`, `-1`, `100_000`, `3e8`; no leading zero, whole, 64 bit.
std::variant<int64_t, ScalarError> parse_int(std::string_view text);
/// `0.1`, `3e-4`, `-2`, `inf`, `-inf`; `nan` is refused.
std::variant<double, ScalarError> parse_float(std::string_view text);

/// Whether a plain scalar has the form of a number, legal or not (`010` has it).
bool looks_like_number(std::string_view text);
/// `yes`, `No`, `on`, `OFF`, `True`, `None`, ..: what YAML 1.1 or Python would take for a bool or
/// null, and this format does not. The remedy, or empty when the word is innocent.
std::string remedy_for_foreign_word(std::string_view text);
/// `[A-Za-z_][A-Za-z0-9_]*`, after an optional `self.`.
bool is_name(std::string_view text);

}  // namespace lockstep
