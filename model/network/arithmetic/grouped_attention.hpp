#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/core/values.hpp"
#include "model/network/context_part.hpp"

namespace lockstep {

// Reference arithmetic of causal attention with a rotary embedding (Su et al. 2021) and several
// query heads for each key and value head (Ainslie et al. 2023), as Llama and Mistral have it. The
// rotary embedding turns numbers i and i + width / 2 of a head by position * theta^(-2 i / width).
// Scores, probabilities and sums are fp32 (fp64 where an operand is); what stands between the
// products is rounded to the output's type, as tensors of a framework are.

struct GroupedAttentionShape {
  int64_t batch = 1;
  int64_t positions = 1;
  int64_t embed = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t head_width = 1;
  double theta = 10000;
  int64_t window = 0;  ///< positions that one attends to, itself included; 0: all before
  int32_t ranks = 1;   ///< that divide the positions, of which these are
  int32_t index = 0;   ///< of the rank that has them
  std::optional<double> norm_eps{};  ///< each head of query and key is normalised before its turn
  RankPositions place() const { return {positions, ranks, index}; }
  int64_t rows() const { return batch * positions; }
  int64_t query_width() const { return heads * head_width; }
  int64_t key_width() const { return key_heads * head_width; }
};

/// Of query, key and value [heads * head width, embed], and the output [embed, heads * head width].
inline constexpr size_t grouped_projections = 4;
/// Biases may be null.
struct GroupedAttentionWeights {
  std::array<const Values*, grouped_projections> weights{};
  std::array<const Values*, grouped_projections> biases{};
  std::array<const Values*, 2> norms{};  ///< of query and key [head width]; null: none
};
/// Where their gradients are added to; null: not wanted.
struct GroupedAttentionGradients {
  std::array<Values*, grouped_projections> weights{};
  std::array<Values*, grouped_projections> biases{};
  std::array<Values*, 2> norms{};
};

/// Turns every head of [rows, heads, head width] by its position; `back`: the other way round.
void rotate_heads(const GroupedAttentionShape& shape, int64_t heads, bool back, Values& states);

/// Input and output are [batch, positions, embed].
void grouped_attention_forward(const Values& input, const GroupedAttentionWeights& weights,
                               const GroupedAttentionShape& shape, Values& output);
/// `input_gradient` may be null: not wanted.
void grouped_attention_backward(const Values& input, const GroupedAttentionWeights& weights,
                                const Values& output_gradient, const GroupedAttentionShape& shape,
                                Values* input_gradient, const GroupedAttentionGradients& gradients);

/// The projections alone: query and key turned, and value, side by side, [batch, positions, query
/// width + 2 key width]. No weight of the output is read.
void turned_projections_forward(const Values& input, const GroupedAttentionWeights& weights,
                                const GroupedAttentionShape& shape, Values& output);
void turned_projections_backward(const Values& input, const GroupedAttentionWeights& weights,
                                 const Values& output_gradient, const GroupedAttentionShape& shape,
                                 Values* input_gradient,
                                 const GroupedAttentionGradients& gradients);

}  // namespace lockstep
