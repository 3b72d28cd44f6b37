#pragma once

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.ReLU. All operands have the same number of elements.

/// output = max(input, 0); NaN stays NaN.
void relu_forward(const Values& input, Values& output);
/// input_gradient = output_gradient where output > 0, else 0 (the slope at 0 is 0).
void relu_backward(const Values& output, const Values& output_gradient, Values& input_gradient);

}  // namespace lockstep
