#include "model/network/arithmetic/gradient_clipping.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

Values squared_norm(std::span<const Values> gradients, DType dtype) {
  double sum = 0;
  for (const Values& gradient : gradients) {
    for (int64_t i = 0; i < gradient.size(); ++i) {
      sum += gradient.number(i) * gradient.number(i);
    }
  }
  return Values::of(dtype, {sum});
}

namespace {

// The steps of clip_grad_norm_, each rounded to the type of the norm; a number divided by a tensor
// is the product with its reciprocal.
template <class Number>
double coefficient(double max_norm, double squared_norm) {
  const Number norm = std::sqrt(static_cast<Number>(squared_norm));
  const Number quotient = 1 / (norm + static_cast<Number>(1e-6)) * static_cast<Number>(max_norm);
  return quotient < 1 || std::isnan(quotient) ? quotient : Number(1);
}

}  // namespace

void clip_by_norm(double max_norm, const Values& squared_norm, Values& gradient) {
  const double square = squared_norm.number(0);
  scale(gradient, squared_norm.dtype() == DType::fp64 ? coefficient<double>(max_norm, square)
                                                      : coefficient<float>(max_norm, square));
}

void clip_by_value(double limit, Values& gradient) {
  for (int64_t i = 0; i < gradient.size(); ++i) {
    const double value = gradient.number(i);
    gradient.set(i, std::isnan(value) ? value : std::clamp(value, -limit, limit));
  }
}

bool all_finite(const Values& gradient) {
  for (int64_t i = 0; i < gradient.size(); ++i) {
    if (!std::isfinite(gradient.number(i))) {
      return false;
    }
  }
  return true;
}

}  // namespace lockstep
