#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/expression/expression.hpp"
#include "model/expression/source.hpp"

namespace lockstep {

struct SyntaxError {
  SourcePlace place;
  std::string message;
  std::string remedy;  ///< what to write instead; may be empty
};

/// The expression, or at least one error.
using ParsedExpression = std::variant<Expression, std::vector<SyntaxError>>;

/// What a quantity becomes that does not fit in 64 bits: an error, or the largest that does, which
/// is enough to compare a result with.
enum class TooLarge : uint8_t { refused, largest };

inline constexpr size_t expression_size_limit = 64 * 1024;  // bytes
inline constexpr int expression_nesting_limit = 200;

/// Low to high: or; and; not; one comparison; + -; * / // %; unary -; **; call f(..), index x[i].
/// `place` is that of the first character; every place in the result and in errors is
/// `place.column` plus the offset in bytes. All words and characters that are none are reported at
/// once, else the first thing that does not fit the grammar.
ParsedExpression parse_expression(std::string_view text, SourcePlace place,
                                  TooLarge too_large = TooLarge::refused);

}  // namespace lockstep
