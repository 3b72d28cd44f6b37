#include "model/expression/arithmetic.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "model/expression/evaluation_error.hpp"
#include "model/expression/python_arithmetic.hpp"
#include "model/expression/quantity_arithmetic.hpp"
#include "model/expression/tensor.hpp"

namespace lockstep {

namespace {

[[noreturn]] void overflow(std::string_view type) {
  throw OperationError(fmt::format("the result does not fit in {}", type));
}

[[noreturn]] void division_by_zero() {
  throw OperationError("division by zero", "guard it: `if`, or max(divisor, 1)");
}

int64_t floor_divided(int64_t a, int64_t b) {
  if (a == std::numeric_limits<int64_t>::min() && b == -1) {
    overflow("an int of 64 bits");
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == -1) {
    return 0;  // the processor traps on the smallest int
  }
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t raised(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) {
      overflow("an int of 64 bits");
    }
    exponent /= 2;
    if (exponent == 0) {
      return result;
    }
    if (__builtin_mul_overflow(base, base, &base)) {
      overflow("an int of 64 bits");
    }
  }
}

double raised(double base, double exponent) {
  if (base == 0 && exponent < 0) {
    division_by_zero();
  }
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      exponent != std::floor(exponent)) {
    throw OperationError("a negative number has no real power of a fraction", "take abs(x) first");
  }
  return std::pow(base, exponent);
}

double float_result(Operator operation, double a, double b) {
  switch (operation) {
    case Operator::add: return a + b;
    case Operator::subtract: return a - b;
    case Operator::multiply: return a * b;
    case Operator::power: return raised(a, b);
    default: break;
  }
  if (b == 0) {
    division_by_zero();
  }
  if (operation == Operator::divide) {
    return a / b;
  }
  const FloorDivision<double> floored = floor_division(a, b);
  return operation == Operator::modulo ? floored.remainder : floored.quotient;
}

Value float_arithmetic(Operator operation, double a, double b) {
  const double result = float_result(operation, a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    overflow("a float of 64 bits");
  }
  return result;
}

Value integer_arithmetic(Operator operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case Operator::add: overflows = __builtin_add_overflow(a, b, &result); break;
    case Operator::subtract: overflows = __builtin_sub_overflow(a, b, &result); break;
    case Operator::multiply: overflows = __builtin_mul_overflow(a, b, &result); break;
    case Operator::power:
      if (b < 0) {
        return float_arithmetic(operation, static_cast<double>(a), static_cast<double>(b));
      }
      return raised(a, b);
    default:
      if (b == 0) {
        division_by_zero();
      }
      if (operation == Operator::divide) {  // long double holds every int64
        return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
      }
      return operation == Operator::modulo ? floor_remainder(a, b) : floor_divided(a, b);
  }
  if (overflows) {
    overflow("an int of 64 bits");
  }
  return result;
}

int64_t whole(const Value& number) {
  return number.is(Value::Kind::boolean) ? (number.boolean() ? 1 : 0) : number.integer();
}

// Exact also between an int and a float: long double holds both.
long double exact(const Value& number) {
  return number.is(Value::Kind::floating) ? static_cast<long double>(number.floating())
                                          : static_cast<long double>(whole(number));
}

// As Python's ==: 1 equals 1.0 also inside lists.
bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return exact(a) == exact(b);
  }
  if (!a.is(Value::Kind::list) || !b.is(Value::Kind::list)) {
    return a == b;
  }
  if (a.list().size() != b.list().size()) {
    return false;
  }
  for (size_t i = 0; i < a.list().size(); ++i) {
    if (!equal(a.list()[i], b.list()[i])) {
      return false;
    }
  }
  return true;
}

[[noreturn]] void wrong_types(Operator operation, const Value& a, const Value& b) {
  std::string remedy;
  if (a.is(Value::Kind::list) || b.is(Value::Kind::list)) {
    remedy = operation == Operator::add ? "join lists with concat([a, b])"
                                        : "take one item, x[i], or its sum, mean, min or max";
  } else if (a.is(Value::Kind::handle) || b.is(Value::Kind::handle)) {
    remedy = "bind its result first: {compute: {metric: NAME, as: x}}";
  }
  throw OperationError(
      fmt::format("`{}` does not take {} and {}", name_of(operation), type_of(a), type_of(b)),
      remedy);
}

Value comparison(Operator operation, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return holds(operation, exact(a), exact(b));
  }
  if (a.is(Value::Kind::text) && b.is(Value::Kind::text)) {
    return holds(operation, a.text(), b.text());
  }
  const bool equality = operation == Operator::equal || operation == Operator::not_equal;
  const bool comparable =
      a.kind() == b.kind() || a.is(Value::Kind::null) || b.is(Value::Kind::null);
  if (!equality || !comparable) {
    wrong_types(operation, a, b);
  }
  return equal(a, b) == (operation == Operator::equal);
}

}  // namespace

Value apply(Operator operation, const Value& left, const Value& right) {
  const bool left_tensor = left.is(Value::Kind::tensor);
  const bool right_tensor = right.is(Value::Kind::tensor);
  if ((left_tensor && (right_tensor || right.is_number())) || (right_tensor && left.is_number())) {
    return elementwise(operation, left, right);
  }
  if ((left.is(Value::Kind::quantity) && (right.is(Value::Kind::quantity) || right.is_number())) ||
      (right.is(Value::Kind::quantity) && left.is_number())) {
    return quantity_arithmetic(operation, left, right);
  }
  if (is_comparison(operation)) {
    return comparison(operation, left, right);
  }
  if (!left.is_number() || !right.is_number()) {
    wrong_types(operation, left, right);
  }
  if (left.is(Value::Kind::floating) || right.is(Value::Kind::floating)) {
    return float_arithmetic(operation, left.number(), right.number());
  }
  return integer_arithmetic(operation, whole(left), whole(right));
}

Value negated(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::floating: return -value.floating();
    case Value::Kind::boolean:
    case Value::Kind::integer: return integer_arithmetic(Operator::subtract, 0, whole(value));
    case Value::Kind::quantity: return apply(Operator::multiply, value, -1);
    case Value::Kind::tensor: return apply(Operator::multiply, value, -1);
    default: throw OperationError(fmt::format("`-` does not take {}", type_of(value)));
  }
}

bool condition_of(const Value& value) {
  if (value.is(Value::Kind::boolean)) {
    return value.boolean();
  }
  if (value.is(Value::Kind::tensor)) {
    if (value.tensor().values.size() != 1) {
      throw OperationError(
          fmt::format("a {} cannot be a condition: it does not have exactly one element",
                      type_of(value)),
          "reduce it first: min(x) is true if all are, max(x) if any is");
    }
    return value.tensor().values.number(0) != 0;
  }
  if (value.is_number()) {
    // Without its value, which differs from rank to rank.
    throw OperationError(
        fmt::format("a number is never a condition, and this is of type {}", type_of(value)),
        "compare it: x != 0");
  }
  throw OperationError(fmt::format("a condition is a bool, not {}", type_of(value)),
                       "compare it with ==");
}

int64_t integer_of(const Value& value, std::string_view what) {
  if (value.is(Value::Kind::integer)) {
    return value.integer();
  }
  if (value.is(Value::Kind::tensor) && value.tensor().values.size() == 1 &&
      !is_floating(value.tensor().values.dtype())) {
    return value.tensor().values.integer(0);
  }
  throw OperationError(fmt::format("{} is an int, not {}", what, type_of(value)),
                       value.is(Value::Kind::floating) || value.is(Value::Kind::tensor)
                           ? "write int(x), or // instead of /"
                           : "");
}

}  // namespace lockstep
