#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.ReLU and GELU. All operands have the same number of elements.

/// output = max(input, 0); NaN stays NaN.
void relu_forward(const Values& input, Values& output);
/// input_gradient = output_gradient where output > 0, else 0 (the slope at 0 is 0).
void relu_backward(const Values& output, const Values& output_gradient, Values& input_gradient);

/// `exact` is x Phi(x), Phi the distribution function of the standard normal distribution; `tanh`
/// is x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
enum class GeluForm : uint8_t { exact, tanh };
void gelu_forward(const Values& input, GeluForm form, Values& output);
void gelu_backward(const Values& input, const Values& output_gradient, GeluForm form,
                   Values& input_gradient);

}  // namespace lockstep
