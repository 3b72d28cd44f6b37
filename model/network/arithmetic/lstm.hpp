#pragma once

#include <cstdint>
#include <vector>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.LSTM (Hochreiter & Schmidhuber 1997), from a state of zeros:
// with gates i, f, g, o = sigma, sigma, tanh, sigma of W_ih x + b_ih + W_hh h + b_hh,
// c = f c + i g and h = o tanh(c). The output is h of every position. All in fp32 (fp64 where an
// operand is), each output rounded once.

struct LstmShape {
  int64_t batch = 1;
  int64_t positions = 1;
  int64_t inputs = 1;
  int64_t hidden = 1;
  int64_t gates() const { return 4 * hidden; }
};

/// weight_ih [4 hidden, inputs], weight_hh [4 hidden, hidden]; biases [4 hidden] may be null.
struct LstmWeights {
  const Values* input = nullptr;
  const Values* state = nullptr;
  const Values* input_bias = nullptr;
  const Values* state_bias = nullptr;
};
/// Where their gradients are added to; null: not wanted.
struct LstmGradients {
  Values* input = nullptr;
  Values* state = nullptr;
  Values* input_bias = nullptr;
  Values* state_bias = nullptr;
};

/// Of one layer: input [batch, positions, inputs], output [batch, positions, hidden].
void lstm_forward(const Values& input, const LstmWeights& weights, const LstmShape& shape,
                  Values& output);
/// `input_gradient` may be null: not wanted.
void lstm_backward(const Values& input, const LstmWeights& weights, const Values& output_gradient,
                   const LstmShape& shape, Values* input_gradient, const LstmGradients& gradients);

}  // namespace lockstep
