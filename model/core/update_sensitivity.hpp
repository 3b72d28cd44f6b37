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
  /// Distance per absolute error of the gradient.
  std::vector<float> by_error;
  /// By element, what the optimizer itself goes on with from step to step.
  std::vector<float> carried;
  double at_most = 0;  ///< however wrong the gradients are: all steps in the other direction
  /// The largest absolute element of the gradient in all steps; after a run, of all gradients of
  /// all ranks: where a gradient cancels (of a bias before a normalisation), the terms that cancel
  /// are as large as the gradients of other tensors, and so is the scale of their rounding.
  double largest_gradient = 0;

  /// How far the element of two computations may be apart whose gradients differ by the error,
  /// relative to the largest gradient.
  double distance(int64_t element, double relative_error) const {
    const auto index = static_cast<size_t>(element);
    const double per_error = index < by_error.size() ? by_error[index] : 0;
    const double per_relative = per_error * largest_gradient;
    // The relative error may be infinite (a chain too long for the type): of nothing, it is
    // nothing.
    return per_relative == 0 ? 0 : std::min(per_relative * relative_error, at_most);
  }
};

}  // namespace lockstep
