#include "model/network/arithmetic/swiglu.hpp"

#include "model/network/arithmetic/activation.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/pointwise.hpp"

namespace lockstep {

namespace {

enum GatedProduct : size_t { gate_product, up_product, down_product };

/// What the forward makes on its way.
struct GatedStates {
  Values gate;
  Values opened;  ///< silu(gate)
  Values up;
  Values product;
};

Values times(const Values& a, const Values& b) {
  Values product(a.dtype(), a.size());
  with_accumulator({&a, &b}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(a);
    const std::vector<T> y = numbers_of<T>(b);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] *= y[i];
    }
    store_numbers(x, product);
  });
  return product;
}

GatedStates gated_states(const Values& input, const SwigluWeights& weights,
                         const SwigluShape& shape, DType dtype) {
  const int64_t size = shape.rows * shape.hidden;
  GatedStates states{Values(dtype, size), Values(dtype, size), Values(dtype, size), {}};
  linear_forward(input, *weights.weights[gate_product], weights.biases[gate_product], shape.rows,
                 shape.embed, shape.hidden, states.gate);
  if (shape.gelu) {
    gelu_forward(states.gate, GeluForm::tanh, states.opened);
  } else {
    pointwise_forward(states.gate, Pointwise::silu, 0, states.opened);
  }
  linear_forward(input, *weights.weights[up_product], weights.biases[up_product], shape.rows,
                 shape.embed, shape.hidden, states.up);
  states.product = times(states.opened, states.up);
  return states;
}

/// One of the two products of the input.
void gated_product_backward(const Values& input, const Values& gradient,
                            const SwigluWeights& weights, GatedProduct which,
                            const SwigluShape& shape, Values* input_gradient,
                            const SwigluGradients& gradients) {
  if (gradients.weights[which] != nullptr) {
    linear_weight_gradient(input, gradient, shape.rows, shape.embed, shape.hidden,
                           *gradients.weights[which]);
  }
  if (gradients.biases[which] != nullptr) {
    bias_weight_gradient(gradient, shape.rows, shape.hidden, *gradients.biases[which]);
  }
  if (input_gradient != nullptr) {
    Values share(input_gradient->dtype(), input_gradient->size());
    linear_input_gradient(gradient, *weights.weights[which], shape.rows, shape.embed, shape.hidden,
                          share);
    accumulate(Reduction::sum, *input_gradient, share);
  }
}

}  // namespace

void swiglu_forward(const Values& input, const SwigluWeights& weights, const SwigluShape& shape,
                    Values& output) {
  const GatedStates states = gated_states(input, weights, shape, output.dtype());
  linear_forward(states.product, *weights.weights[down_product], weights.biases[down_product],
                 shape.rows, shape.hidden, shape.embed, output);
}

void swiglu_backward(const Values& input, const SwigluWeights& weights,
                     const Values& output_gradient, const SwigluShape& shape,
                     Values* input_gradient, const SwigluGradients& gradients) {
  const DType dtype = output_gradient.dtype();
  const GatedStates states = gated_states(input, weights, shape, dtype);
  if (gradients.weights[down_product] != nullptr) {
    linear_weight_gradient(states.product, output_gradient, shape.rows, shape.hidden, shape.embed,
                           *gradients.weights[down_product]);
  }
  if (gradients.biases[down_product] != nullptr) {
    bias_weight_gradient(output_gradient, shape.rows, shape.embed, *gradients.biases[down_product]);
  }
  Values product_gradient(dtype, shape.rows * shape.hidden);
  linear_input_gradient(output_gradient, *weights.weights[down_product], shape.rows, shape.hidden,
                        shape.embed, product_gradient);
  Values gate_gradient(dtype, product_gradient.size());
  const Values opened_gradient = times(product_gradient, states.up);
  if (shape.gelu) {
    gelu_backward(states.gate, opened_gradient, GeluForm::tanh, gate_gradient);
  } else {
    pointwise_backward(states.gate, opened_gradient, Pointwise::silu, 0, gate_gradient);
  }
  if (input_gradient != nullptr) {
    *input_gradient = Values(input_gradient->dtype(), input_gradient->size());
  }
  gated_product_backward(input, gate_gradient, weights, gate_product, shape, input_gradient,
                         gradients);
  gated_product_backward(input, times(product_gradient, states.opened), weights, up_product, shape,
                         input_gradient, gradients);
}

}  // namespace lockstep
