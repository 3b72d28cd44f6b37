#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/expression/parser.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

struct Token {
  enum class Kind { value, name, symbol, end };
  Kind kind = Kind::end;
  size_t offset = 0;   ///< in the text
  std::string text{};  ///< of a name (dots included), a keyword or a symbol
  Value value{};       ///< of a number, quantity or text
};

struct Tokens {
  std::vector<Token> tokens;  ///< the last is `end`
  std::vector<SyntaxError> errors;
};

/// Splits the text; all errors of the text are found at once. Keywords are names here.
Tokens tokens_of(std::string_view text, const SourcePlace& place,
                 TooLarge too_large = TooLarge::refused);
/// The place of an offset in a text that begins at `place`.
SourcePlace place_at(const SourcePlace& place, size_t offset);

}  // namespace lockstep
