#pragma once

#include "model/expression/expression.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

/// Operators where at least one operand is a quantity and the other a quantity or a number.
/// Adds to and compares with its own kind and the int 0; times and by a number; by its own kind it
/// is a float (`//` an int, `%` the rest); bytes by rate and flops by flops per second are time.
/// Errors: OperationError.
Value quantity_arithmetic(Operator operation, const Value& left, const Value& right);

}  // namespace lockstep
