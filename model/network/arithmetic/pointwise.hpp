#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.LeakyReLU, ReLU6, SiLU, Hardswish, Sigmoid, Hardsigmoid and
// Tanh, element by element, and of Softmax. Gradients overwrite.

/// `leaky_relu` is x above 0, else slope x; `relu6` is x within 0 and 6; `silu` is x sigmoid(x);
/// `hardsigmoid` is (x + 3) / 6 within 0 and 1, and `hardswish` x times that.
enum class Pointwise : uint8_t { leaky_relu, relu6, silu, hardswish, sigmoid, hardsigmoid, tanh };
/// `slope` is that of leaky_relu alone.
void pointwise_forward(const Values& input, Pointwise function, double slope, Values& output);
void pointwise_backward(const Values& input, const Values& output_gradient, Pointwise function,
                        double slope, Values& input_gradient);

/// Lines of `length` elements that lie `stride` apart.
struct SoftmaxShape {
  int64_t length = 1;
  int64_t stride = 1;
};
/// exp(x) / sum exp(x) over each line, shifted by its maximum.
void softmax_forward(const Values& input, const SoftmaxShape& shape, Values& output);
/// y (g - sum(g y)) over each line.
void softmax_backward(const Values& input, const Values& output_gradient, const SoftmaxShape& shape,
                      Values& input_gradient);

}  // namespace lockstep
