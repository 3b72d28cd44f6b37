#include "io/expression/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace lockstep {

namespace {

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}
bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }
char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// For messages: a text may be a whole misplaced paragraph.
constexpr size_t longest_quoted = 32;
std::string quoted(std::string_view text) {
  return fmt::format("`{}{}`", text.substr(0, longest_quoted),
                     text.size() > longest_quoted ? "..." : "");
}

// Digits with single `_` between them; the length that they take in the text.
std::variant<size_t, QuantityError> read_digits(std::string_view text, std::string& digits) {
  size_t length = 0;
  while (length < text.size() && (is_digit(text[length]) || text[length] == '_')) {
    const bool between = length > 0 && text[length - 1] != '_' && length + 1 < text.size() &&
                         is_digit(text[length + 1]);
    if (text[length] == '_' && !between) {
      return QuantityError{"an `_` in a number must be between two digits", "write 100_000"};
    }
    if (text[length] != '_') {
      digits += text[length];
    }
    ++length;
  }
  return length;
}

// The exponent `e8`, `e-4`; 0 if there is none (an `e` without digits is not an exponent).
size_t read_exponent(std::string_view text, std::string& digits) {
  if (text.empty() || lower(text[0]) != 'e') {
    return 0;
  }
  size_t length = 1;
  if (length < text.size() && (text[length] == '-' || text[length] == '+')) {
    ++length;
  }
  const size_t begin = length;
  while (length < text.size() && is_digit(text[length])) {
    ++length;
  }
  if (length == begin) {
    return 0;
  }
  digits += 'e';
  digits += text[1] == '-' ? "-" : "";
  digits += text.substr(begin, length - begin);
  return length;
}

// Levenshtein distance, small letters and capitals alike; spellings are short.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string_view unit_with_long_name(std::string_view spelling) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"picosecond", "ps"}, {"nanosecond", "ns"}, {"microsecond", "us"}, {"millisecond", "ms"},
      {"second", "s"},      {"sec", "s"},         {"minute", "min"},     {"m", "min"},
      {"hour", "h"},        {"hr", "h"},          {"day", "d"},          {"year", "y"},
      {"msec", "ms"},       {"usec", "us"},       {"nsec", "ns"},        {"\xc2\xb5s", "us"},
      {"byte", "B"},        {"kb", "kb/s"},       {"Mb", "Mb/s"},        {"Gb", "Gb/s"},
      {"Tb", "Tb/s"}};
  for (const auto& [name, unit_name] : names) {
    if (spelling == name || (spelling.size() == name.size() + 1 && spelling.back() == 's' &&
                             spelling.substr(0, name.size()) == name)) {
      return unit_name;
    }
  }
  return "";
}

std::string units_of(QuantityKind kind) {
  std::string names;
  for (const Unit& candidate : units) {
    if (candidate.kind == kind) {
      names += (names.empty() ? "" : " ") + std::string(candidate.name);
    }
  }
  return names;
}

std::string_view example_of(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::time: return "10 ms";
    case QuantityKind::bytes: return "64 MiB";
    case QuantityKind::rate: return "50 GB/s";
    case QuantityKind::flops: return "3 TFLOP";
    case QuantityKind::flops_rate: return "300 TFLOP/s";
  }
  return "";
}

// With "a" before it.
std::string_view described(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::bytes: return "size in bytes";
    case QuantityKind::flops: return "number of flops";
    case QuantityKind::flops_rate: return "number of flops per second";
    default: return name_of(kind);
  }
}

QuantityError too_large(const Unit& of) {
  return {fmt::format("the {} does not fit in 64 bits", described(of.kind)),
          of.kind == QuantityKind::time ? "the longest time is 106 d" : ""};
}

}  // namespace

std::variant<std::optional<DecimalText>, QuantityError> read_decimal(std::string_view text) {
  DecimalText number;
  if (text.empty() || !is_digit(text[0])) {
    return std::nullopt;
  }
  const auto whole = read_digits(text, number.digits);
  if (const auto* error = std::get_if<QuantityError>(&whole)) {
    return *error;
  }
  number.length = std::get<size_t>(whole);
  if (number.digits.size() > 1 && number.digits[0] == '0') {
    return QuantityError{"a number does not begin with a zero",
                         "drop the zero; base 8 and 16 are not part of the language"};
  }
  if (number.length < text.size() && text[number.length] == '.') {
    number.digits += '.';
    const auto fraction = read_digits(text.substr(number.length + 1), number.digits);
    if (const auto* error = std::get_if<QuantityError>(&fraction)) {
      return *error;
    }
    if (std::get<size_t>(fraction) == 0) {
      return QuantityError{"a point needs digits on both sides",
                           fmt::format("write {}0", number.digits)};
    }
    number.length += 1 + std::get<size_t>(fraction);
    number.has_fraction = true;
  }
  const size_t exponent = read_exponent(text.substr(number.length), number.digits);
  number.length += exponent;
  number.has_exponent = exponent > 0;
  return number;
}

std::variant<int64_t, QuantityError> count_of(const DecimalText& number, const Unit& unit) {
  constexpr Int128 most_digits = 1'000'000'000'000'000'000;
  const size_t exponent_at = std::min(number.digits.find('e'), number.digits.size());
  int64_t exponent = 0;
  if (number.has_exponent) {
    const char* begin = number.digits.data() + exponent_at + 1;
    const char* end = number.digits.data() + number.digits.size();
    if (std::from_chars(begin, end, exponent).ec != std::errc()) {
      return QuantityError{"the exponent is out of range", ""};
    }
    exponent = std::clamp<int64_t>(exponent, -1'000'000, 1'000'000);
  }
  Int128 scaled = 0;
  bool after_point = false;
  for (const char letter : number.digits.substr(0, exponent_at)) {
    if (letter == '.') {
      after_point = true;
    } else if (scaled >= most_digits) {  // later digits are below any rounding
      exponent += after_point ? 0 : 1;
    } else {
      scaled = scaled * 10 + (letter - '0');
      exponent -= after_point ? 1 : 0;
    }
  }
  if (scaled == 0) {
    return 0;
  }
  if (__builtin_mul_overflow(scaled, unit.factor, &scaled)) {
    return too_large(unit);
  }
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(scaled, 10, &scaled)) {
      return too_large(unit);
    }
  }
  Int128 divisor = 1;
  for (; exponent < 0 && divisor <= 2 * scaled; ++exponent) {
    if (__builtin_mul_overflow(divisor, 10, &divisor)) {
      return 0;  // below half a count
    }
  }
  const Int128 rounded = scaled / divisor + (scaled % divisor >= divisor - scaled % divisor);
  if (rounded > INT64_MAX) {
    return too_large(unit);
  }
  return static_cast<int64_t>(rounded);
}

size_t unit_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() &&
         (is_letter(text[length]) || static_cast<unsigned char>(text[length]) >= 0x80 ||
          (length > 0 && is_digit(text[length])))) {
    ++length;
  }
  const bool letters_follow =
      length + 2 < text.size() && (is_letter(text[length + 2]) || is_digit(text[length + 2]));
  const bool time = length > 0 && find_unit(text.substr(0, length)) != nullptr &&
                    find_unit(text.substr(0, length))->kind == QuantityKind::time;
  if (length > 0 && text.substr(length, 2) == "/s" && !letters_follow && !time) {
    length += 2;
  }
  return length;
}

QuantityError unknown_unit(std::string_view spelling, std::optional<QuantityKind> kind) {
  const auto fits = [&](const Unit& unit) { return !kind || unit.kind == *kind; };
  const std::string all =
      kind ? fmt::format("the units of {} are {}", name_of(*kind), units_of(*kind))
           : "units are those of time, bytes, rates and flops: 10 ms, 64 MiB, 50 GB/s, 3 TFLOP";
  if (const Unit* other = find_unit(spelling); other != nullptr && kind) {
    return {fmt::format("`{}` is a unit of {}, not of {}", spelling, name_of(other->kind),
                        name_of(*kind)),
            all};
  }
  const Unit* nearest = find_unit(unit_with_long_name(spelling));
  if (nearest != nullptr && !fits(*nearest)) {
    nearest = nullptr;
  }
  if (nearest == nullptr && spelling.size() <= longest_quoted) {
    size_t least = 3;
    for (const Unit& unit : units) {
      const size_t changes = distance(spelling, unit.name);
      if (fits(unit) && changes < least && changes < unit.name.size()) {
        least = changes;
        nearest = &unit;
      }
    }
  }
  return {fmt::format("unknown unit {}", quoted(spelling)),
          nearest == nullptr ? all : fmt::format("did you mean `{}`?", nearest->name)};
}

namespace {

// Reads what follows the number: nothing, a unit of that kind, or an error.
std::variant<const Unit*, QuantityError> read_unit(std::string_view spelling, QuantityKind kind) {
  const Unit* named = find_unit(spelling);
  if (named == nullptr || named->kind != kind) {
    return unknown_unit(spelling, kind);
  }
  return named;
}

std::variant<DecimalText, QuantityError> read_magnitude(std::string_view text,
                                                        std::string_view what,
                                                        std::string_view example) {
  if (text.empty()) {
    return QuantityError{fmt::format("a {} is missing", what), fmt::format("write {}", example)};
  }
  if (text[0] == '-') {
    return QuantityError{fmt::format("a {} is not negative", what), ""};
  }
  const auto number = read_decimal(text);
  if (const auto* error = std::get_if<QuantityError>(&number)) {
    return *error;
  }
  const auto& decimal = std::get<std::optional<DecimalText>>(number);
  if (!decimal) {
    return QuantityError{
        fmt::format("{} is not a {}: it does not begin with a number", quoted(text), what),
        fmt::format("write {}", example)};
  }
  return *decimal;
}

template <class Quantity>
std::variant<Quantity, QuantityError> parse(std::string_view text, QuantityKind kind) {
  auto parsed = parse_quantity(text, kind);
  if (auto* error = std::get_if<QuantityError>(&parsed)) {
    return std::move(*error);
  }
  return Quantity(std::get<AnyQuantity>(parsed).count);
}

bool is_zero(const DecimalText& number) {
  const std::string mantissa = number.digits.substr(0, number.digits.find('e'));
  return mantissa.find_first_not_of("0.") == std::string::npos;
}

}  // namespace

std::variant<AnyQuantity, QuantityError> parse_quantity(std::string_view text, QuantityKind kind) {
  text = trimmed(text);
  const auto magnitude = read_magnitude(text, described(kind), example_of(kind));
  if (const auto* error = std::get_if<QuantityError>(&magnitude)) {
    return *error;
  }
  const auto& number = std::get<DecimalText>(magnitude);
  const std::string_view spelling = trimmed(text.substr(number.length));
  if (spelling.empty() && is_zero(number)) {
    return AnyQuantity{kind, 0};
  }
  if (spelling.empty()) {
    return QuantityError{
        fmt::format("{} has no unit", quoted(text)),
        fmt::format("write a unit of {}, as in {}", name_of(kind), example_of(kind))};
  }
  const auto named = read_unit(spelling, kind);
  if (const auto* error = std::get_if<QuantityError>(&named)) {
    return *error;
  }
  const auto count = count_of(number, *std::get<const Unit*>(named));
  if (const auto* error = std::get_if<QuantityError>(&count)) {
    return *error;
  }
  return AnyQuantity{kind, std::get<int64_t>(count)};
}

std::variant<Time, QuantityError> parse_time(std::string_view text) {
  return parse<Time>(text, QuantityKind::time);
}
std::variant<Bytes, QuantityError> parse_bytes(std::string_view text) {
  return parse<Bytes>(text, QuantityKind::bytes);
}
std::variant<BytesPerSecond, QuantityError> parse_rate(std::string_view text) {
  return parse<BytesPerSecond>(text, QuantityKind::rate);
}
std::variant<Flops, QuantityError> parse_flops(std::string_view text) {
  return parse<Flops>(text, QuantityKind::flops);
}
std::variant<FlopsPerSecond, QuantityError> parse_flops_rate(std::string_view text) {
  return parse<FlopsPerSecond>(text, QuantityKind::flops_rate);
}

std::variant<double, QuantityError> parse_percent(std::string_view text) {
  text = trimmed(text);
  const auto magnitude = read_magnitude(text, "percentage", "12.5 %");
  if (const auto* error = std::get_if<QuantityError>(&magnitude)) {
    return *error;
  }
  const auto& number = std::get<DecimalText>(magnitude);
  const std::string_view sign = trimmed(text.substr(number.length));
  if (sign != "%" && !(sign.empty() && is_zero(number))) {
    return QuantityError{fmt::format("{} is not a percentage", quoted(text)),
                         fmt::format("write {} %", number.digits)};
  }
  double percent = 0;
  const char* end = number.digits.data() + number.digits.size();
  if (std::from_chars(number.digits.data(), end, percent).ec != std::errc()) {
    return QuantityError{fmt::format("{} is out of range", quoted(text)), ""};
  }
  return percent / 100;
}

}  // namespace lockstep
