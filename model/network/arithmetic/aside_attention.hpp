#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/layer_arguments.hpp"

namespace lockstep {

// Reference arithmetic of attention beside another tensor: T5's self-attention, which adds a bias
// to its scores, and cross-attention to the output of an encoder. What stands between the products
// is rounded to the output's type.

struct AsideAttentionShape {
  AsideAttentionArguments arguments{};
  int64_t samples = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t query_rows() const { return samples * queries; }
  int64_t key_rows() const { return samples * keys; }
};

/// What key and value are made of, and the bias [samples, heads, queries, keys]; null: none.
struct AsideOperands {
  const Values& source;
  const Values* bias = nullptr;
};

constexpr size_t aside_products = 4;  ///< query, key, value, output
struct AsideWeights {
  const Values* weight[aside_products]{};
  const Values* bias[aside_products]{};  ///< null: none
};
/// Where gradients are added to; null: not wanted.
struct AsideWeightGradients {
  Values* weight[aside_products]{};
  Values* bias[aside_products]{};
};
/// `input` is overwritten, the others are added to; null: not wanted. In self-attention, `source`
/// is null, and its gradient is part of the input's.
struct AsideGradients {
  Values* input = nullptr;
  Values* source = nullptr;
  Values* bias = nullptr;
  AsideWeightGradients weights{};
};

void aside_attention_forward(const Values& input, const AsideOperands& aside,
                             const AsideWeights& weights, const AsideAttentionShape& shape,
                             Values& output);
void aside_attention_backward(const Values& input, const AsideOperands& aside,
                              const AsideWeights& weights, const Values& output_gradient,
                              const AsideAttentionShape& shape, const AsideGradients& gradients);

}  // namespace lockstep
