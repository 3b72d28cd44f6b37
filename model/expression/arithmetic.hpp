#pragma once

#include <cstdint>

#include "model/expression/expression.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

// The operators of expressions on values. Errors are OperationError.
// Python's meaning for numbers (The Python Language Reference, 6 Expressions): `/` gives a float,
// `//` and `%` floor, `**` of a negative exponent is a float. A result beyond int64, or infinite
// from finite operands, is an error; so is division by zero. Quantities are rounded to the nearest
// count, `//` floors. For tensors see model/expression/tensor.hpp.

/// `operation` is one of + - * / // % ** == != < <= > >=; comparisons give a bool, or a tensor of
/// uint8 if an operand is a tensor.
Value apply(Operator operation, const Value& left, const Value& right);
/// Unary minus; of a bool too.
Value negated(const Value& value);

/// A bool, or a tensor of one element (true unless 0). A number is never a condition.
bool condition_of(const Value& value);
/// An int, or a tensor of one element of an integer type; `what` names it in the error.
int64_t integer_of(const Value& value, std::string_view what);

}  // namespace lockstep
