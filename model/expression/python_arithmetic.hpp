#pragma once

#include <cmath>
#include <concepts>

#include "model/expression/expression.hpp"

namespace lockstep {

template <class T>
bool holds(Operator comparison, const T& a, const T& b) {
  switch (comparison) {
    case Operator::equal: return a == b;
    case Operator::not_equal: return a != b;
    case Operator::less: return a < b;
    case Operator::less_equal: return a <= b;
    case Operator::greater: return a > b;
    default: return a >= b;
  }
}

template <std::floating_point T>
struct FloorDivision {
  T quotient;   ///< a // b, rounded down
  T remainder;  ///< a % b, of the sign of b
};

/// Python's // and % of floats; a remainder by zero is nan, as fmod gives it.
template <std::floating_point T>
FloorDivision<T> floor_division(T a, T b) {
  if (b == 0) {
    return {a / b, std::fmod(a, b)};
  }
  T remainder = std::fmod(a, b);
  T quotient = std::nearbyint((a - remainder) / b);  // all but whole already
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    remainder += b;
    quotient -= 1;
  }
  return {quotient, remainder == 0 ? std::copysign(T{0}, b) : remainder};
}

}  // namespace lockstep
