#include "io/expression/lexer.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "io/expression/quantity.hpp"

namespace lockstep {

namespace {

bool begins_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}
bool continues_name(char letter) { return begins_name(letter) || is_digit(letter); }
bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

// Longest first.
constexpr std::array<std::string_view, 18> symbols{
    "==", "!=", "<=", ">=", "//", "**", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ","};
// Operators of other languages, and their names here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> foreign{{
    {"&&", "write `and`"},
    {"||", "write `or`"},
    {"=", "compare with `==`"},
    {"!", "write `not`, or `!=`"},
    {"&", "write `and`"},
    {"|", "write `or`"},
    {"\"", "write text in single quotes: 'text'"},
    {"{", "a list is written [a, b]; there are no maps"},
    {".", "a number has digits before its point: 0.5"},
    {":", "there are no slices; take one item, x[i]"},
    {"^", "a power is written `**`"},
}};

class Lexer {
 public:
  Lexer(std::string_view text, const SourcePlace& place, TooLarge too_large)
      : text_(text), place_(place), too_large_(too_large) {}
  Tokens run() &&;

 private:
  std::string_view rest() const { return text_.substr(offset_); }
  void add(Token token) { result_.tokens.push_back(std::move(token)); }
  void error(size_t offset, std::string message, std::string remedy = "") {
    result_.errors.push_back({place_at(place_, offset), std::move(message), std::move(remedy)});
  }
  void name();
  void number();
  void quantity(const DecimalText& decimal, size_t begin, size_t unit_begin);
  Value plain_number(const DecimalText& decimal, size_t begin);
  void quoted();
  void symbol();

  std::string_view text_;
  const SourcePlace& place_;
  TooLarge too_large_;
  size_t offset_ = 0;
  Tokens result_;
};

Tokens Lexer::run() && {
  while (offset_ < text_.size()) {
    if (is_space(text_[offset_])) {
      ++offset_;
    } else if (begins_name(text_[offset_])) {
      name();
    } else if (is_digit(text_[offset_])) {
      number();
    } else if (text_[offset_] == '\'') {
      quoted();
    } else {
      symbol();
    }
  }
  add({.kind = Token::Kind::end, .offset = text_.size()});
  return std::move(result_);
}

void Lexer::name() {
  const size_t begin = offset_;
  while (offset_ < text_.size() &&
         (continues_name(text_[offset_]) || (text_[offset_] == '.' && offset_ + 1 < text_.size() &&
                                             begins_name(text_[offset_ + 1])))) {
    ++offset_;
  }
  std::string text(text_.substr(begin, offset_ - begin));
  for (const auto& [other, own] : {std::pair{"True", "true"}, std::pair{"False", "false"}}) {
    if (text == other) {
      error(begin, fmt::format("`{}` is not a word of the language", other),
            fmt::format("write {}", own));
    }
  }
  if (text == "true" || text == "false") {
    add({.kind = Token::Kind::value, .offset = begin, .value = text == "true"});
  } else if (text == "inf") {
    add({.kind = Token::Kind::value,
         .offset = begin,
         .value = std::numeric_limits<double>::infinity()});
  } else {
    add({.kind = Token::Kind::name, .offset = begin, .text = std::move(text)});
  }
}

void Lexer::number() {
  const size_t begin = offset_;
  const auto read = read_decimal(rest());
  if (const auto* wrong = std::get_if<QuantityError>(&read)) {
    error(begin, wrong->message, wrong->remedy);
    while (offset_ < text_.size() && (continues_name(text_[offset_]) || text_[offset_] == '.')) {
      ++offset_;
    }
    add({.kind = Token::Kind::value, .offset = begin});
    return;
  }
  const DecimalText& decimal = *std::get<std::optional<DecimalText>>(read);
  offset_ += decimal.length;
  size_t unit_begin = offset_;
  while (unit_begin < text_.size() && is_space(text_[unit_begin])) {
    ++unit_begin;
  }
  const size_t length = unit_length(text_.substr(unit_begin));
  const std::string_view word = text_.substr(unit_begin, length);
  if (length > 0 && word != "and" && word != "or" && word != "not") {
    quantity(decimal, begin, unit_begin);
  } else {
    add({.kind = Token::Kind::value, .offset = begin, .value = plain_number(decimal, begin)});
  }
}

void Lexer::quantity(const DecimalText& decimal, size_t begin, size_t unit_begin) {
  const std::string_view spelling = text_.substr(unit_begin, unit_length(text_.substr(unit_begin)));
  offset_ = unit_begin + spelling.size();
  Token token{.kind = Token::Kind::value, .offset = begin};
  if (const Unit* unit = find_unit(spelling); unit == nullptr) {
    const QuantityError wrong = unknown_unit(spelling, std::nullopt);
    error(unit_begin, wrong.message, wrong.remedy);
  } else if (const auto count = count_of(decimal, *unit); count.index() == 1) {
    if (too_large_ == TooLarge::largest) {
      token.value = AnyQuantity{unit->kind, std::numeric_limits<int64_t>::max()};
      return add(std::move(token));
    }
    const auto& wrong = std::get<QuantityError>(count);
    error(begin, wrong.message, wrong.remedy);
  } else {
    token.value = AnyQuantity{unit->kind, std::get<int64_t>(count)};
  }
  add(std::move(token));
}

// 3e8 is an int, as is everything whole without a point or a negative exponent, if it fits.
Value Lexer::plain_number(const DecimalText& decimal, size_t begin) {
  const char* first = decimal.digits.data();
  const char* last = first + decimal.digits.size();
  double floating = 0;
  const bool fits_float = std::from_chars(first, last, floating).ec == std::errc();
  const bool whole = !decimal.has_fraction && decimal.digits.find('-') == std::string::npos;
  if (whole) {
    const auto count = count_of(decimal, Unit{"", QuantityKind::bytes, 1});
    if (const auto* integer = std::get_if<int64_t>(&count)) {
      return *integer;
    }
    if (!decimal.has_exponent) {
      error(begin, "the number does not fit in an int of 64 bits", "write it as a float: 1e20");
      return 0;
    }
  }
  if (!fits_float && decimal.digits.find("e-") == std::string::npos) {
    error(begin, "the number does not fit in a float of 64 bits");
  }
  return floating;  // what is too small for a float is read as 0
}

void Lexer::quoted() {
  const size_t begin = offset_++;
  std::string text;
  while (offset_ < text_.size() && text_[offset_] != '\'') {
    if (text_[offset_] != '\\') {
      text += text_[offset_++];
      continue;
    }
    const char letter = offset_ + 1 < text_.size() ? text_[offset_ + 1] : '\0';
    switch (letter) {
      case 'n': text += '\n'; break;
      case 't': text += '\t'; break;
      case 'r': text += '\r'; break;
      case '\'':
      case '\\': text += letter; break;
      default: error(offset_, "an unknown escape", R"(the escapes are \' \\ \n \t \r)");
    }
    offset_ += 2;
  }
  if (offset_ >= text_.size()) {
    error(begin, "the text does not end", "close it with '");
  }
  offset_ = std::min(offset_ + 1, text_.size());
  add({.kind = Token::Kind::value, .offset = begin, .value = std::move(text)});
}

void Lexer::symbol() {
  for (const std::string_view symbol : symbols) {
    if (rest().substr(0, symbol.size()) == symbol) {
      add({.kind = Token::Kind::symbol, .offset = offset_, .text = std::string(symbol)});
      offset_ += symbol.size();
      return;
    }
  }
  for (const auto& [spelling, remedy] : foreign) {
    if (rest().substr(0, spelling.size()) == spelling) {
      error(offset_, fmt::format("`{}` is not part of the language", spelling),
            std::string(remedy));
      offset_ += spelling.size();
      return;
    }
  }
  const auto byte = static_cast<unsigned char>(text_[offset_]);
  error(offset_,
        byte < 0x20 || byte >= 0x7f
            ? fmt::format("a character that is not part of the language (byte 0x{:02x})", byte)
            : fmt::format("`{}` is not part of the language", text_[offset_]));
  for (++offset_;
       offset_ < text_.size() && (static_cast<unsigned char>(text_[offset_]) & 0xc0) == 0x80;) {
    ++offset_;  // the other bytes of the same character
  }
}

}  // namespace

SourcePlace place_at(const SourcePlace& place, size_t offset) {
  SourcePlace result = place;
  if (place.column > 0) {
    result.column += static_cast<int>(offset);
  }
  return result;
}

Tokens tokens_of(std::string_view text, const SourcePlace& place, TooLarge too_large) {
  return Lexer(text, place, too_large).run();
}

}  // namespace lockstep
