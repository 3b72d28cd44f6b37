#include "model/network/arithmetic/pointwise.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <class T>
T hardsigmoid(T x) {
  return std::clamp(x + T{3}, T{0}, T{6}) / T{6};
}

template <class T>
T value_of(Pointwise function, T x, T slope) {
  switch (function) {
    case Pointwise::leaky_relu: return x > 0 ? x : slope * x;
    case Pointwise::relu6: return std::clamp(x, T{0}, T{6});
    case Pointwise::silu: return x * sigmoid(x);
    case Pointwise::hardswish: return x * hardsigmoid(x);
    case Pointwise::sigmoid: return sigmoid(x);
    case Pointwise::hardsigmoid: return hardsigmoid(x);
    case Pointwise::tanh: return std::tanh(x);
  }
  return x;
}

template <class T>
T slope_of(Pointwise function, T x, T slope) {
  switch (function) {
    case Pointwise::leaky_relu: return x > 0 ? T{1} : slope;
    case Pointwise::relu6: return x > 0 && x < 6 ? T{1} : T{0};
    case Pointwise::hardsigmoid:  // torch has a sixth of single precision, whatever the type
      return x > -3 && x < 3 ? static_cast<T>(1.0F / 6.0F) : T{0};
    case Pointwise::hardswish:  // torch takes the slope at -3 and 3 from outside
      return x <= -3 ? T{0} : x < 3 ? x / T{3} + T{0.5} : T{1};
    case Pointwise::silu: {
      const T s = sigmoid(x);
      return s * (T{1} + x * (T{1} - s));
    }
    case Pointwise::sigmoid: {
      const T s = sigmoid(x);
      return s * (T{1} - s);
    }
    case Pointwise::tanh: {
      const T t = std::tanh(x);
      return T{1} - t * t;
    }
  }
  return T{1};
}

/// Replaces each line by its softmax.
template <class T>
void to_softmax(std::vector<T>& numbers, const SoftmaxShape& shape) {
  const auto length = static_cast<size_t>(shape.length);
  const auto stride = static_cast<size_t>(shape.stride);
  for (size_t block = 0; block < numbers.size(); block += length * stride) {
    for (size_t first = block; first < block + stride; ++first) {
      T greatest = numbers[first];
      for (size_t i = 0; i < length; ++i) {
        greatest = std::max(greatest, numbers[first + i * stride]);
      }
      T sum = 0;
      for (size_t i = 0; i < length; ++i) {
        T& number = numbers[first + i * stride];
        number = std::exp(number - greatest);
        sum += number;
      }
      for (size_t i = 0; i < length; ++i) {
        numbers[first + i * stride] /= sum;
      }
    }
  }
}

void ensure_lines(const Values& values, const SoftmaxShape& shape) {
  ensure(shape.length > 0 && shape.stride > 0 && values.size() % (shape.length * shape.stride) == 0,
         "a softmax's lines fill its tensor");
}

}  // namespace

void pointwise_forward(const Values& input, Pointwise function, double slope, Values& output) {
  ensure(input.size() == output.size(), "a pointwise layer's operands fit");
  with_accumulator({&input, &output}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    for (T& number : x) {
      number = value_of(function, number, static_cast<T>(slope));
    }
    store_numbers(x, output);
  });
}

void pointwise_backward(const Values& input, const Values& output_gradient, Pointwise function,
                        double slope, Values& input_gradient) {
  ensure(input.size() == output_gradient.size() && input.size() == input_gradient.size(),
         "a pointwise layer's operands fit");
  with_accumulator({&input, &output_gradient, &input_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    for (size_t i = 0; i < x.size(); ++i) {
      gradient[i] *= slope_of(function, x[i], static_cast<T>(slope));
    }
    store_numbers(gradient, input_gradient);
  });
}

void softmax_forward(const Values& input, const SoftmaxShape& shape, Values& output) {
  ensure(input.size() == output.size(), "a softmax's operands fit");
  ensure_lines(input, shape);
  with_accumulator({&input, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    to_softmax(y, shape);
    store_numbers(y, output);
  });
}

void softmax_backward(const Values& input, const Values& output_gradient, const SoftmaxShape& shape,
                      Values& input_gradient) {
  ensure(input.size() == output_gradient.size() && input.size() == input_gradient.size(),
         "a softmax's operands fit");
  ensure_lines(input, shape);
  with_accumulator({&input, &output_gradient, &input_gradient}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    to_softmax(y, shape);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const auto length = static_cast<size_t>(shape.length);
    const auto stride = static_cast<size_t>(shape.stride);
    for (size_t block = 0; block < y.size(); block += length * stride) {
      for (size_t first = block; first < block + stride; ++first) {
        T product = 0;
        for (size_t i = 0; i < length; ++i) {
          product += gradient[first + i * stride] * y[first + i * stride];
        }
        for (size_t i = 0; i < length; ++i) {
          const size_t at = first + i * stride;
          gradient[at] = y[at] * (gradient[at] - product);
        }
      }
    }
    store_numbers(gradient, input_gradient);
  });
}

}  // namespace lockstep
