#include <fmt/format.h>

#include <cmath>

#include "model/expression/evaluation_error.hpp"
#include "model/expression/python_arithmetic.hpp"
#include "model/expression/tensor.hpp"

namespace lockstep {

namespace {

constexpr DType default_floating = DType::fp32;

/// One side of an operator: a tensor, or a number that extends to the other's shape.
struct Operand {
  const Tensor* tensor = nullptr;
  double floating = 0;
  int64_t whole = 0;
  bool dimensioned = false;
  DType dtype = default_floating;

  int64_t index(int64_t i) const { return dimensioned ? i : 0; }
  double number(int64_t i) const {
    return tensor != nullptr ? tensor->values.number(index(i)) : floating;
  }
  int64_t integer(int64_t i) const {
    return tensor != nullptr ? tensor->values.integer(index(i)) : whole;
  }
};

Operand operand(const Value& value) {
  Operand result;
  switch (value.kind()) {
    case Value::Kind::tensor:
      result.tensor = &value.tensor();
      result.dimensioned = !value.tensor().shape.empty();
      result.dtype = value.tensor().values.dtype();
      break;
    case Value::Kind::boolean:
      result.whole = value.boolean() ? 1 : 0;
      result.dtype = DType::uint8;
      break;
    case Value::Kind::integer:
      result.whole = value.integer();
      result.dtype = DType::int64;
      break;
    default: result.dtype = default_floating;
  }
  if (value.is_number()) {
    result.floating = value.number();
  }
  return result;
}

int category(DType dtype) { return is_floating(dtype) ? 2 : dtype == DType::int64 ? 1 : 0; }

// Operands with dimensions decide the type, then scalar tensors, then numbers.
DType common_type(const Operand& a, const Operand& b) {
  const auto priority = [](const Operand& x) {
    return x.tensor == nullptr ? 0 : x.dimensioned ? 2 : 1;
  };
  if (priority(a) == priority(b)) {
    return promoted(a.dtype, b.dtype);
  }
  const Operand& strong = priority(a) > priority(b) ? a : b;
  const Operand& weak = priority(a) > priority(b) ? b : a;
  return category(weak.dtype) > category(strong.dtype) ? weak.dtype : strong.dtype;
}

template <std::floating_point T>
T floating_result(Operator operation, T a, T b) {
  switch (operation) {
    case Operator::add: return a + b;
    case Operator::subtract: return a - b;
    case Operator::multiply: return a * b;
    case Operator::divide: return a / b;
    case Operator::power: return std::pow(a, b);
    default: break;
  }
  const FloorDivision<T> floored = floor_division(a, b);
  return operation == Operator::modulo ? floored.remainder : floored.quotient;
}

int64_t wrapped_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    throw OperationError("an integer tensor has no negative powers", "write float: x * 1.0");
  }
  auto factor = static_cast<uint64_t>(base);
  uint64_t result = 1;
  for (; exponent > 0; exponent /= 2, factor *= factor) {
    result = exponent % 2 != 0 ? result * factor : result;
  }
  return static_cast<int64_t>(result);
}

// Unsigned, because int64 tensors wrap on a device and never trap.
int64_t integer_result(Operator operation, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (operation) {
    case Operator::add: return static_cast<int64_t>(x + y);
    case Operator::subtract: return static_cast<int64_t>(x - y);
    case Operator::multiply: return static_cast<int64_t>(x * y);
    case Operator::power: return wrapped_power(a, b);
    default: break;
  }
  if (b == 0) {
    throw OperationError("division by zero in an integer tensor",
                         "divide with /, which gives inf, or guard the divisor");
  }
  if (b == -1) {  // the smallest int64 divided by -1 traps
    return operation == Operator::modulo ? 0 : static_cast<int64_t>(0 - x);
  }
  const bool lower = a % b != 0 && (a < 0) != (b < 0);
  return operation == Operator::modulo ? a % b + (lower ? b : 0) : a / b - (lower ? 1 : 0);
}

void store(Operator operation, DType common, const Operand& a, const Operand& b, int64_t i,
           Values& result) {
  if (common == DType::fp64) {
    const double x = a.number(i);
    const double y = b.number(i);
    result.set(
        i, is_comparison(operation) ? holds(operation, x, y) : floating_result(operation, x, y));
  } else if (is_floating(common)) {
    const auto x = static_cast<float>(a.number(i));
    const auto y = static_cast<float>(b.number(i));
    result.set(
        i, is_comparison(operation) ? holds(operation, x, y) : floating_result(operation, x, y));
  } else if (is_comparison(operation)) {
    result.set(i, holds(operation, a.integer(i), b.integer(i)));
  } else {
    const int64_t number = integer_result(operation, a.integer(i), b.integer(i));
    result.set_integer(i, common == DType::uint8 ? number & 0xff : number);
  }
}

}  // namespace

DType promoted(DType a, DType b) {
  if (category(a) != category(b)) {
    return category(a) > category(b) ? a : b;
  }
  if (a == b || !is_floating(a)) {
    return a;
  }
  return a == DType::fp64 || b == DType::fp64 ? DType::fp64 : DType::fp32;
}

Value elementwise(Operator operation, const Value& left, const Value& right) {
  const Operand a = operand(left);
  const Operand b = operand(right);
  if (a.dimensioned && b.dimensioned && a.tensor->shape != b.tensor->shape) {
    throw OperationError(
        fmt::format("`{}` takes tensors of one shape, not {} and {}", name_of(operation),
                    text_of_shape(a.tensor->shape), text_of_shape(b.tensor->shape)),
        "take one element, x[i], or a reduction, mean(x)");
  }
  DType common = common_type(a, b);
  if (operation == Operator::divide && !is_floating(common)) {
    common = default_floating;
  }
  const Tensor& shaped = a.dimensioned || b.tensor == nullptr ? *a.tensor : *b.tensor;
  const int64_t count = shaped.values.size();
  Tensor result{shaped.shape, Values(is_comparison(operation) ? DType::uint8 : common, count)};
  for (int64_t i = 0; i < count; ++i) {
    store(operation, common, a, b, i, result.values);
  }
  return result;
}

}  // namespace lockstep
