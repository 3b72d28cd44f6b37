#pragma once

#include <array>
#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of the gated feed-forward of Llama (Shazeer 2020, "GLU Variants Improve
// Transformer"): y = down(silu(gate(x)) * up(x)). Every intermediate tensor is rounded to the
// output's type.

struct SwigluShape {
  int64_t rows = 1;
  int64_t embed = 1;
  int64_t hidden = 1;
  bool gelu = false;  ///< of the gate, by its tanh approximation, in place of silu
};
/// Of gate and up [hidden, embed], and of down [embed, hidden].
inline constexpr size_t swiglu_products = 3;
/// Biases may be null.
struct SwigluWeights {
  std::array<const Values*, swiglu_products> weights{};
  std::array<const Values*, swiglu_products> biases{};
};
/// Where their gradients are added to; null: not wanted.
struct SwigluGradients {
  std::array<Values*, swiglu_products> weights{};
  std::array<Values*, swiglu_products> biases{};
};

void swiglu_forward(const Values& input, const SwigluWeights& weights, const SwigluShape& shape,
                    Values& output);
/// `input_gradient` may be null: not wanted.
void swiglu_backward(const Values& input, const SwigluWeights& weights,
                     const Values& output_gradient, const SwigluShape& shape,
                     Values* input_gradient, const SwigluGradients& gradients);

}  // namespace lockstep
