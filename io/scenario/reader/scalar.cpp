#include "io/scenario/reader/scalar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "model/core/units.hpp"

namespace lockstep {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// A decimal number taken apart: [sign] whole [. fraction] [e exponent].
struct Decimal {
  bool negative = false;
  std::string whole;
  std::string fraction;
  bool point = false;
  bool has_exponent = false;
  long exponent = 0;
  bool stray_underscore = false;
};

/// Digits with single underscores between them.
std::string take_digits(std::string_view& text, bool& stray_underscore) {
  std::string digits;
  bool after_digit = false;
  while (!text.empty() && (is_digit(text[0]) || (text[0] == '_' && !digits.empty()))) {
    if (text[0] == '_') {
      stray_underscore |= !after_digit;
      after_digit = false;
    } else {
      digits += text[0];
      after_digit = true;
    }
    text.remove_prefix(1);
  }
  stray_underscore |= !digits.empty() && !after_digit;
  return digits;
}

std::optional<Decimal> take_apart(std::string_view text) {
  Decimal number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  number.whole = take_digits(text, number.stray_underscore);
  if (!text.empty() && text[0] == '.') {
    number.point = true;
    text.remove_prefix(1);
    number.fraction = take_digits(text, number.stray_underscore);
  }
  if (number.whole.empty() && number.fraction.empty()) {
    return std::nullopt;
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    const bool down = !text.empty() && text[0] == '-';
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
      text.remove_prefix(1);
    }
    const std::string digits = take_digits(text, number.stray_underscore);
    if (digits.empty()) {
      return std::nullopt;
    }
    number.has_exponent = true;
    constexpr size_t enough = 6;
    number.exponent = digits.size() > enough ? 999'999 : std::stol(digits);
    number.exponent = down ? -number.exponent : number.exponent;
  }
  if (!text.empty()) {
    return std::nullopt;
  }
  return number;
}

std::optional<ScalarError> spelling_error(const Decimal& number, std::string_view text,
                                          std::string_view wanted) {
  if (number.stray_underscore) {
    return ScalarError{fmt::format("takes {}, but `{}` has a stray underscore", wanted, text),
                       "underscores are allowed only between digits: 100_000"};
  }
  if (number.whole.size() > 1 && number.whole[0] == '0') {
    const size_t first = std::min(number.whole.find_first_not_of('0'), number.whole.size() - 1);
    return ScalarError{fmt::format("takes {}, but `{}` has a leading zero", wanted, text),
                       fmt::format("write {}{}; it is decimal", number.negative ? "-" : "",
                                   number.whole.substr(first))};
  }
  return std::nullopt;
}

/// The value of a decimal if it is whole and fits.
std::optional<int64_t> whole_value(const Decimal& number, bool& overflow) {
  std::string digits = number.whole + number.fraction;
  long scale = number.exponent - static_cast<long>(number.fraction.size());
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) {
    return 0;
  }
  digits.erase(0, first);
  while (scale < 0 && digits.back() == '0') {
    digits.pop_back();
    ++scale;
  }
  if (scale < 0) {
    return std::nullopt;
  }
  constexpr size_t most_digits = 19;
  if (digits.size() + static_cast<size_t>(scale) > most_digits) {
    overflow = true;
    return std::nullopt;
  }
  digits.append(static_cast<size_t>(scale), '0');
  Int128 value = 0;
  for (const char digit : digits) {
    value = value * 10 + (digit - '0');
  }
  value = number.negative ? -value : value;
  if (value > std::numeric_limits<int64_t>::max() || value < std::numeric_limits<int64_t>::min()) {
    overflow = true;
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

}  // namespace

std::variant<bool, ScalarError> parse_bool(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  const std::string word = lower(text);
  if (word == "yes" || word == "on" || word == "true" || word == "y" || word == "1") {
    return ScalarError{fmt::format("takes a bool, not `{}`", text), "write true"};
  }
  if (word == "no" || word == "off" || word == "false" || word == "n" || word == "0") {
    return ScalarError{fmt::format("takes a bool, not `{}`", text), "write false"};
  }
  return ScalarError{fmt::format("takes a bool, not `{}`", text), "write true or false"};
}

std::variant<int64_t, ScalarError> parse_int(std::string_view text) {
  const std::optional<Decimal> number = take_apart(text);
  if (!number) {
    return ScalarError{fmt::format("takes an int, not `{}`", text),
                       "write digits: 8, 100_000, 3e8"};
  }
  if (const auto error = spelling_error(*number, text, "an int")) {
    return *error;
  }
  bool overflow = false;
  const std::optional<int64_t> value = whole_value(*number, overflow);
  if (overflow) {
    return ScalarError{fmt::format("takes an int of 64 bits, but `{}` is too large", text), ""};
  }
  if (!value || (number->point && !number->has_exponent)) {
    return ScalarError{fmt::format("takes an int, but `{}` is not one", text),
                       "write a whole number without a point"};
  }
  return *value;
}

std::variant<double, ScalarError> parse_float(std::string_view text) {
  if (text == "inf" || text == "-inf") {
    const double infinity = std::numeric_limits<double>::infinity();
    return text[0] == '-' ? -infinity : infinity;
  }
  if (lower(text) == "nan" || lower(text) == ".nan") {
    return ScalarError{"takes a number, not nan", "nan is allowed only in `values`"};
  }
  const std::optional<Decimal> number = take_apart(text);
  if (!number) {
    return ScalarError{fmt::format("takes a number, not `{}`", text), "write 0.1, 3e-4 or inf"};
  }
  if (const auto error = spelling_error(*number, text, "a number")) {
    return *error;
  }
  const std::string digits = fmt::format(
      "{}{}.{}e{}", number->negative ? "-" : "", number->whole.empty() ? "0" : number->whole,
      number->fraction.empty() ? "0" : number->fraction, number->exponent);
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc::result_out_of_range && number->exponent > 0) {
    return ScalarError{fmt::format("takes a number, but `{}` is too large", text), "write inf"};
  }
  return value;
}

bool looks_like_number(std::string_view text) { return take_apart(text).has_value(); }

std::string remedy_for_foreign_word(std::string_view text) {
  const std::string word = lower(text);
  if (text == "true" || text == "false") {
    return {};
  }
  if (word == "yes" || word == "on" || word == "true") {
    return fmt::format("write true, or \"{}\" if it is a text", text);
  }
  if (word == "no" || word == "off" || word == "false") {
    return fmt::format("write false, or \"{}\" if it is a text", text);
  }
  if (text == "~" || text == "None" || text == "Null" || text == "NULL") {
    return fmt::format("write null, or \"{}\" if it is a text", text);
  }
  return {};
}

bool is_name(std::string_view text) {
  constexpr std::string_view self = "self.";
  if (text.starts_with(self)) {
    text.remove_prefix(self.size());
  }
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || is_digit(c); });
}

}  // namespace lockstep
