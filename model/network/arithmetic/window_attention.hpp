#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/window_shape.hpp"

namespace lockstep {

// Reference arithmetic of Swin's attention in shifted windows, as torchvision computes it. What
// stands between its products is rounded to the output's type.

/// Biases may be null. qkv [3 channels, channels], projection [channels, channels], table
/// [distances, heads].
struct WindowAttentionWeights {
  const Values* qkv = nullptr;
  const Values* qkv_bias = nullptr;
  const Values* projection = nullptr;
  const Values* projection_bias = nullptr;
  const Values* table = nullptr;
};
/// Where their gradients are added to; null: not wanted.
struct WindowAttentionGradients {
  Values* qkv = nullptr;
  Values* qkv_bias = nullptr;
  Values* projection = nullptr;
  Values* projection_bias = nullptr;
  Values* table = nullptr;
};

/// Input and output are [samples, height, width, channels].
void window_attention_forward(const Values& input, const WindowAttentionWeights& weights,
                              int64_t samples, const WindowShape& shape, Values& output);
/// `input_gradient` may be null: not wanted.
void window_attention_backward(const Values& input, const WindowAttentionWeights& weights,
                               const Values& output_gradient, int64_t samples,
                               const WindowShape& shape, Values* input_gradient,
                               const WindowAttentionGradients& gradients);

}  // namespace lockstep
