#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

/// How far an optimizer that divides by the size of the gradients (Adam) takes a parameter where
/// the gradients carry rounding. A gradient that is rounding alone still moves its element by a
/// whole step, to this side or the other. By element, over all steps; of optimizers that are linear
/// in the gradients there is none.
struct UpdateSensitivity {
  /// Distance by an error of the gradients, relative to the largest element of their tensor.
  std::vector<float> by_relative_error;
  double at_most = 0;  ///< however wrong the gradients are: all steps in the other direction
  double largest_gradient = 0;  ///< absolute element, of all steps so far

  /// How far the element of two computations may be apart whose gradients differ by the error.
  double distance(int64_t element, double relative_error) const {
    const auto index = static_cast<size_t>(element);
    const double by_error = index < by_relative_error.size() ? by_relative_error[index] : 0;
    return std::min(by_error * relative_error, at_most);
  }
};

}  // namespace lockstep
