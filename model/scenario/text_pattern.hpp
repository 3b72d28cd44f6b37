#pragma once

#include <string>
#include <vector>

#include "model/expression/expression.hpp"

namespace lockstep {

/// A text with expressions in braces, as Python's f-strings: "layer.{i}".
struct TextPattern {
  std::string text;                ///< as it is written
  std::vector<std::string> words;  ///< around the expressions: one more than those
  std::vector<Expression> values;
};

}  // namespace lockstep
