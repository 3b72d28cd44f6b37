#include "model/network/arithmetic/activation.hpp"

#include <cmath>
#include <numbers>

#include "model/core/ensure.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// x Phi(x) and its derivative Phi(x) + x phi(x).
template <class T>
struct ExactGelu {
  static T distribution(T x) {
    return T{0.5} * (T{1} + std::erf(x * static_cast<T>(1 / std::numbers::sqrt2)));
  }
  static T value(T x) { return x * distribution(x); }
  static T slope(T x) {
    constexpr T scale = static_cast<T>(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    return distribution(x) + x * scale * std::exp(T{-0.5} * x * x);
  }
};

template <class T>
struct TanhGelu {
  static constexpr T root = static_cast<T>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  static constexpr T cubic = static_cast<T>(0.044715);
  static T bend(T x) { return std::tanh(root * (x + cubic * x * x * x)); }
  static T value(T x) { return T{0.5} * x * (T{1} + bend(x)); }
  static T slope(T x) {
    const T t = bend(x);
    return T{0.5} * (T{1} + t) + T{0.5} * x * (T{1} - t * t) * root * (T{1} + T{3} * cubic * x * x);
  }
};

}  // namespace

void relu_forward(const Values& input, Values& output) {
  ensure(input.size() == output.size(), "a relu's operands fit");
  for (int64_t i = 0; i < input.size(); ++i) {
    const double x = input.number(i);
    output.set(i, x <= 0 ? 0 : x);
  }
}

void relu_backward(const Values& output, const Values& output_gradient, Values& input_gradient) {
  ensure(output.size() == output_gradient.size() && output.size() == input_gradient.size(),
         "a relu's operands fit");
  for (int64_t i = 0; i < output.size(); ++i) {
    input_gradient.set(i, output.number(i) <= 0 ? 0 : output_gradient.number(i));
  }
}

void gelu_forward(const Values& input, GeluForm form, Values& output) {
  ensure(input.size() == output.size(), "a GELU's operands fit");
  with_accumulator({&input, &output}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    for (T& number : x) {
      number = form == GeluForm::tanh ? TanhGelu<T>::value(number) : ExactGelu<T>::value(number);
    }
    store_numbers(x, output);
  });
}

void gelu_backward(const Values& input, const Values& output_gradient, GeluForm form,
                   Values& input_gradient) {
  ensure(input.size() == output_gradient.size() && input.size() == input_gradient.size(),
         "a GELU's operands fit");
  with_accumulator({&input, &output_gradient, &input_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    for (size_t i = 0; i < x.size(); ++i) {
      gradient[i] *= form == GeluForm::tanh ? TanhGelu<T>::slope(x[i]) : ExactGelu<T>::slope(x[i]);
    }
    store_numbers(gradient, input_gradient);
  });
}

}  // namespace lockstep
