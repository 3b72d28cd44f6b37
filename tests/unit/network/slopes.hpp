#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <initializer_list>

#include "model/core/values.hpp"

namespace lockstep::test {

inline Values fp32(std::initializer_list<double> numbers) {
  return Values::of(DType::fp32, numbers);
}
inline Values fp64(std::initializer_list<double> numbers) {
  return Values::of(DType::fp64, numbers);
}
inline Values int64(std::initializer_list<double> numbers) {
  return Values::of(DType::int64, numbers);
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    sum += a.number(i) * b.number(i);
  }
  return sum;
}

/// Every partial derivative of `function` at `point` by central differences must be `gradient`.
inline void check_gradient(const Values& point, const Values& gradient, double step,
                           double tolerance, const std::function<double(const Values&)>& function) {
  for (int64_t i = 0; i < point.size(); ++i) {
    Values above = point;
    Values below = point;
    above.set(i, point.number(i) + step);
    below.set(i, point.number(i) - step);
    const double slope = (function(above) - function(below)) / (2 * step);
    INFO("element " << i);
    CHECK(std::abs(slope - gradient.number(i)) <= tolerance);
  }
}

}  // namespace lockstep::test
