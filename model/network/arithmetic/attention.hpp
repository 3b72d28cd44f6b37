#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of scaled dot-product attention (Vaswani et al. 2017), of self-attention as
// torch.nn.MultiheadAttention and GPT-2 spell it. `projected` is [batch, positions, 3, heads, head
// width]: query, key and value of one input projection; the result is [batch, positions, heads,
// head width]. Scores, probabilities and sums are fp32 (fp64 where an operand is).

struct AttentionShape {
  int64_t batch = 1;
  int64_t positions = 1;
  int64_t heads = 1;
  int64_t head_width = 1;
  bool causal = false;  ///< position p attends to the positions up to p alone
  int64_t width() const { return heads * head_width; }
  int64_t rows() const { return batch * positions; }
};

/// attended = softmax(query key^T / sqrt(head width)) value, in each head for itself.
void attention_forward(const Values& projected, const AttentionShape& shape, Values& attended);
/// The gradient of `projected` from that of `attended`; overwrites.
void attention_backward(const Values& projected, const Values& attended_gradient,
                        const AttentionShape& shape, Values& projected_gradient);

/// The four tensors of a self-attention layer; biases may be null. in_weight [3 width, width],
/// in_bias [3 width], out_weight [width, width], out_bias [width].
struct AttentionWeights {
  const Values* in_weight = nullptr;
  const Values* in_bias = nullptr;
  const Values* out_weight = nullptr;
  const Values* out_bias = nullptr;
};
/// Where their gradients are added to; null: not wanted.
struct AttentionGradients {
  Values* in_weight = nullptr;
  Values* in_bias = nullptr;
  Values* out_weight = nullptr;
  Values* out_bias = nullptr;
};

/// Input projection, attention, output projection. Input and output are [batch, positions, width];
/// what stands between them is rounded to the output's type, as tensors of a framework are.
void self_attention_forward(const Values& input, const AttentionWeights& weights,
                            const AttentionShape& shape, Values& output);
/// `input_gradient` may be null: not wanted.
void self_attention_backward(const Values& input, const AttentionWeights& weights,
                             const Values& output_gradient, const AttentionShape& shape,
                             Values* input_gradient, const AttentionGradients& gradients);

}  // namespace lockstep
