#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.Linear and of a bias. Shapes, row-major: input [rows, in],
// weight [out, in], bias [out], output [rows, out]; `rows` is the batch times every dimension but
// the last. Sums run over increasing indices in fp32 (fp64 where an operand is), and each result is
// rounded once. Sizes that do not fit are bugs. Operands may be of different floating types.

/// output = input weight^T + bias; `bias` may be null.
void linear_forward(const Values& input, const Values& weight, const Values* bias, int64_t rows,
                    int64_t in, int64_t out, Values& output);
/// input_gradient = output_gradient weight
void linear_input_gradient(const Values& output_gradient, const Values& weight, int64_t rows,
                           int64_t in, int64_t out, Values& input_gradient);
/// weight_gradient += output_gradient^T input
void linear_weight_gradient(const Values& input, const Values& output_gradient, int64_t rows,
                            int64_t in, int64_t out, Values& weight_gradient);

struct BiasShape {
  int64_t rows = 0;
  int64_t features = 0;
  int64_t shares = 1;
};
/// output[row, i] = input[row, i] + bias[i] / shares
void bias_forward(const Values& input, const Values& bias, const BiasShape& shape, Values& output);
/// bias_gradient += sum of output_gradient over the rows; also for the bias of a Linear.
void bias_weight_gradient(const Values& output_gradient, int64_t rows, int64_t features,
                          Values& bias_gradient);

}  // namespace lockstep
