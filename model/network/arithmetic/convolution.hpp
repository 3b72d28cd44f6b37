#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.Conv2d. Input [batch, in channels, height, width], weight [out
// channels, in channels / groups, kernel height, kernel width], bias [out channels]. Sums run over
// input channels, then rows and columns of the kernel, in fp32 (fp64 where an operand is).

/// Sizes of one convolution: its arguments, and height and width of input and output.
struct ConvolutionShape {
  Conv2dArguments arguments{};
  int64_t batch = 1;
  Pair input{1, 1};
  Pair output{1, 1};
};

/// `bias` may be null.
void conv2d_forward(const Values& input, const Values& weight, const Values* bias,
                    const ConvolutionShape& shape, Values& output);
/// Overwrites.
void conv2d_input_gradient(const Values& output_gradient, const Values& weight,
                           const ConvolutionShape& shape, Values& input_gradient);
/// torch.nn.ConvTranspose2d: the gradient of the convolution `mirrored`, which leads from the
/// output to the input, plus the bias [mirrored in channels], which may be null.
void conv_transpose2d_forward(const Values& input, const Values& weight, const Values* bias,
                              const ConvolutionShape& mirrored, Values& output);
/// Adds.
void conv2d_weight_gradient(const Values& input, const Values& output_gradient,
                            const ConvolutionShape& shape, Values& weight_gradient);
/// Adds the sum over batch and space.
void conv2d_bias_gradient(const Values& output_gradient, const ConvolutionShape& shape,
                          Values& bias_gradient);

}  // namespace lockstep
