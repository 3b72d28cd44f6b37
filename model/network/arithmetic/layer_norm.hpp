#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.LayerNorm (Ba, Kiros and Hinton 2016). Input, output and their
// gradients are [rows, width], weight and bias [width]. Each row has a mean and a biased variance,
// computed in fp32 (fp64 where an operand is) in two passes over increasing indices. `weight` and
// `bias` may be null.

struct LayerNormShape {
  int64_t rows = 1;
  int64_t width = 1;
  double eps = 1e-5;
};

/// output = (input - mean) / sqrt(variance + eps) * weight + bias
void layer_norm_forward(const Values& input, const Values* weight, const Values* bias,
                        const LayerNormShape& shape, Values& output);

/// With g = output_gradient * weight and n the normalised input: (g - mean(g) - n * mean(g n)) /
/// sqrt(variance + eps), means over the row.
void layer_norm_input_gradient(const Values& input, const Values& output_gradient,
                               const Values* weight, const LayerNormShape& shape,
                               Values& input_gradient);

/// Adds the sums over the rows of output_gradient * normalised input and of output_gradient.
/// `bias_gradient` may be null.
void layer_norm_weight_gradients(const Values& input, const Values& output_gradient,
                                 const LayerNormShape& shape, Values& weight_gradient,
                                 Values* bias_gradient);

}  // namespace lockstep
