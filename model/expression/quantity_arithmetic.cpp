#include "model/expression/quantity_arithmetic.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "model/expression/arithmetic.hpp"
#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

int64_t nearest(long double count) {
  constexpr long double limit = 9223372036854775808.0L;
  const long double rounded = std::round(count);
  if (!(rounded >= -limit && rounded < limit)) {
    throw QuantityOverflow();
  }
  return static_cast<int64_t>(rounded);
}

// Halves away from zero, as std::round.
int64_t nearest_quotient(Int128 count, Int128 divisor) {
  const Int128 sign = (count < 0) != (divisor < 0) ? -1 : 1;
  const Int128 magnitude = count < 0 ? -count : count;
  const Int128 parts = divisor < 0 ? -divisor : divisor;
  return narrow_to_int64(sign * ((2 * magnitude + parts) / (2 * parts)));
}

// The operand as a quantity of this kind: a quantity of it, or the int 0, which needs no unit.
std::optional<int64_t> count_in(const Value& value, QuantityKind kind) {
  if (value.is(Value::Kind::quantity) && value.quantity().kind == kind) {
    return value.quantity().count;
  }
  if (value.is(Value::Kind::integer) && value.integer() == 0) {
    return 0;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(Operator operation, const Value& left, const Value& right) {
  const bool number = left.is_number() || right.is_number();
  throw OperationError(fmt::format("`{}` does not take {} and {}", name_of(operation),
                                   type_of(left), type_of(right)),
                       number ? "give the number a unit, as in 10 ms or 64 MiB" : "");
}

Value with_own_kind(Operator operation, const Value& left, const Value& right) {
  const QuantityKind kind =
      left.is(Value::Kind::quantity) ? left.quantity().kind : right.quantity().kind;
  const std::optional<int64_t> a = count_in(left, kind);
  const std::optional<int64_t> b = count_in(right, kind);
  if (!a || !b) {
    refuse(operation, left, right);
  }
  if (is_comparison(operation)) {
    return apply(operation, *a, *b);
  }
  const Int128 sum = operation == Operator::add ? Int128{*a} + *b : Int128{*a} - *b;
  return AnyQuantity{kind, narrow_to_int64(sum)};
}

Value multiplied(AnyQuantity quantity, const Value& number) {
  const int64_t count = number.is(Value::Kind::floating)
                            ? nearest(static_cast<long double>(quantity.count) * number.floating())
                            : narrow_to_int64(Int128{quantity.count} *
                                              static_cast<int64_t>(number.is(Value::Kind::boolean)
                                                                       ? number.boolean()
                                                                       : number.integer()));
  return AnyQuantity{quantity.kind, count};
}

Value divided(Operator operation, AnyQuantity quantity, const Value& number) {
  if (number.number() == 0) {
    throw OperationError("division by zero");
  }
  if (number.is(Value::Kind::floating)) {
    const long double quotient = static_cast<long double>(quantity.count) / number.floating();
    return AnyQuantity{
        quantity.kind,
        nearest(operation == Operator::floor_divide ? std::floor(quotient) : quotient)};
  }
  const Value whole = apply(Operator::add, number, 0);
  if (operation == Operator::floor_divide) {
    return AnyQuantity{quantity.kind, apply(operation, quantity.count, whole).integer()};
  }
  return AnyQuantity{quantity.kind, nearest_quotient(quantity.count, whole.integer())};
}

// A quantity divided by its rate is a time.
std::optional<Value> duration(AnyQuantity amount, AnyQuantity speed) {
  const bool moves = amount.kind == QuantityKind::bytes && speed.kind == QuantityKind::rate;
  const bool computes =
      amount.kind == QuantityKind::flops && speed.kind == QuantityKind::flops_rate;
  if (!moves && !computes) {
    return std::nullopt;
  }
  return Time(nearest_quotient(Int128{amount.count} * picoseconds_per_second, speed.count));
}

Value divided(Operator operation, const Value& left, const Value& right) {
  const AnyQuantity a = left.quantity();
  const AnyQuantity b = right.quantity();
  if (b.count == 0) {
    throw OperationError("division by zero");
  }
  if (a.kind == b.kind) {
    const Value result = apply(operation, a.count, b.count);
    return operation == Operator::modulo ? Value(AnyQuantity{a.kind, result.integer()}) : result;
  }
  if (const auto time = duration(a, b); time && operation == Operator::divide) {
    return *time;
  }
  refuse(operation, left, right);
}

}  // namespace

Value quantity_arithmetic(Operator operation, const Value& left, const Value& right) {
  const bool left_quantity = left.is(Value::Kind::quantity);
  const bool right_quantity = right.is(Value::Kind::quantity);
  if (is_comparison(operation) || operation == Operator::add || operation == Operator::subtract) {
    return with_own_kind(operation, left, right);
  }
  if (operation == Operator::multiply && left_quantity != right_quantity) {
    return left_quantity ? multiplied(left.quantity(), right) : multiplied(right.quantity(), left);
  }
  const bool division = operation == Operator::divide || operation == Operator::floor_divide;
  if (left_quantity && right_quantity && (division || operation == Operator::modulo)) {
    return divided(operation, left, right);
  }
  if (left_quantity && !right_quantity && division) {
    return divided(operation, left.quantity(), right);
  }
  refuse(operation, left, right);
}

}  // namespace lockstep
