#include "model/network/internal_tensors.hpp"

#include <algorithm>

#include "model/network/window_shape.hpp"

namespace lockstep {

namespace {

/// Elements of the states and of the scores of one attention; the scores are 0 where a fused kernel
/// forms none in memory.
struct AttentionSizes {
  int64_t state = 0;
  int64_t scores = 0;
  bool has_dropout = false;
};

int64_t keys_beside(const Layer& layer) {
  return layer.kind == LayerKind::cross_attention ? layer.aside->shape[0] : layer.input[0];
}

/// T5's softmax is in fp32: where scores are narrower, its result is kept beside the probabilities.
Bytes wide_probabilities(const Layer& layer, DType dtype) {
  const auto* beside = std::get_if<AsideAttentionArguments>(&layer.arguments);
  const bool is_wide = beside != nullptr && !beside->scaled && size_of(dtype) < 4 &&
                       layer.saves.elements > 0 && layer.saves.fixed == Bytes{};
  return is_wide ? 4_B * (beside->num_heads * layer.input[0] * keys_beside(layer)) : Bytes{};
}

AttentionSizes attention_sizes(const Layer& layer) {
  const auto* attention = std::get_if<AttentionArguments>(&layer.arguments);
  const bool forms_scores =
      !layer.context && layer.attention_core && layer.attention_core->elements > 0;
  if (layer.kind == LayerKind::attention_projections) {
    return {};
  }
  if (const auto* grouped = std::get_if<GroupedQueryArguments>(&layer.arguments)) {
    // Query and sum have a width, key and value another: half of the four are a state.
    const int64_t state = layer.input[0] * (grouped->query_width() + grouped->key_width()) / 2;
    return {state, forms_scores ? grouped->num_heads * layer.input[0] * layer.input[0] : 0, false};
  }
  if (const auto* windows = std::get_if<WindowAttentionArguments>(&layer.arguments)) {
    const WindowShape shape = window_shape(*windows, layer.input);
    return {shape.positions() * shape.channels, shape.positions() * shape.area() * shape.heads,
            false};
  }
  if (const auto* beside = std::get_if<AsideAttentionArguments>(&layer.arguments)) {
    const int64_t keys = keys_beside(layer);
    const int64_t state = (layer.input[0] + keys) * beside->width() / 2;
    const bool is_flash = layer.saves.fixed > Bytes{};
    return {state, is_flash ? 0 : beside->num_heads * layer.input[0] * keys, false};
  }
  if (attention == nullptr) {
    return {};
  }
  return {layer.input[0] * attention->embed_dim,
          forms_scores ? attention->num_heads * layer.input[0] * layer.input[0] : 0,
          attention->dropout > 0};
}

/// In 16 bits flash attention writes in the order of the query, which is already that of positions
/// before batch; in wider types attention is memory-efficient.
bool reorders_sum(const Layer& layer, DType dtype) {
  return layer.kind == LayerKind::multihead_attention && size_of(dtype) > 2;
}

}  // namespace

DType reading_type(const Layer& layer, DType input, const ComputingTypes& types) {
  if (!types.is_mixed() || !is_floating(input)) {
    return input;
  }
  switch (layer.kind) {
    case LayerKind::layer_norm: return types.layer_norm_is_fp32 ? DType::fp32 : input;
    case LayerKind::cross_entropy_loss:
    case LayerKind::mse_loss: return DType::fp32;
    default: return is_product(layer.kind) ? types.activations : input;
  }
}

ConvertedCopies converted_copies(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::biased_attention: return {.of_input = 3};
    case LayerKind::cross_attention: return {.of_branch = 2};
    default: return {};
  }
}

Bytes saves_of_autocast(const Layer& layer) {
  return layer.kind == LayerKind::window_attention && layer.saves.elements > 0
             ? 4_B * attention_sizes(layer).scores
             : Bytes{};
}

bool copies_input(const Layer& layer) { return layer.kind == LayerKind::multihead_attention; }

// Beside query, key, value and the weighted sum, MultiheadAttention saves that sum once more, in
// the order of positions before batch, which memory-efficient attention does not write.
Bytes own_saves(const Layer& layer, DType dtype) {
  const bool reorders = layer.saves.elements > 0 && reorders_sum(layer, dtype);
  const int64_t reordered = reorders ? elements_of(layer.input) : 0;
  return Bytes(size_of(dtype)) * (layer.saves.elements + reordered) + layer.saves.fixed +
         wide_probabilities(layer, dtype);
}

Bytes core_saves(const Layer& layer, DType dtype) {
  if (!layer.attention_core) {
    return {};
  }
  return Bytes(size_of(dtype)) * layer.attention_core->elements + layer.attention_core->fixed;
}

// Softmax reads the scores and writes the probabilities; with dropout, what is saved after that is
// more than the scores were.
Bytes forward_workspace(const Layer& layer, DType dtype) {
  const AttentionSizes sizes = attention_sizes(layer);
  return Bytes(size_of(dtype)) * (sizes.has_dropout ? 0 : sizes.scores);
}

// Relative to all that the layer keeps, in states, with what each kernel has freed deducted:
//  - CausalSelfAttention keeps 5 (input, query, key, value, weighted sum). The fused backward has
//    these, the gradient of the sum and the three that it writes: 9, so 4 more. When it has freed
//    4, the three are joined in memory of 3: 7.
//  - MultiheadAttention keeps 6 (the sum twice), or 5 where it need not be reordered. After the
//  fused backward only the input is left,
//    with the gradient of one of the three, its zero-filled image in memory of 3, the sum of the
//    images so far and the next sum: 1 + 1 + 9 = 11, so 5 or 6 more.
//  - A core alone has what it keeps and the two gradients beside; the three are made apart and then
//    joined in memory of 3.
// Where scores are formed, their gradient and that of the probabilities come on top of one state;
// with dropout the dropped probabilities have gone by then.
Bytes backward_workspace(const Layer& layer, DType dtype) {
  if (const auto* gated = std::get_if<SwigluArguments>(&layer.arguments)) {
    // The product has gone, and its gradient and those of its two factors are there.
    return Bytes(size_of(dtype)) * 2 * (elements_of(layer.input) / gated->embed_dim) *
           gated->hidden_dim;
  }
  if (const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments)) {
    // The same of the rows of one expert after the other, or of all experts at once, beside the
    // gradients of what was sent and given.
    const int64_t rows = elements_of(layer.input) / mixture->embed_dim * mixture->top_k;
    const int64_t at_once = mixture->grouped ? rows : rows / mixture->num_experts;
    const int64_t read = rows * mixture->tensor_ranks * mixture->embed_dim;
    return Bytes(size_of(dtype)) * 2 * (read + at_once * mixture->hidden_dim);
  }
  const AttentionSizes sizes = attention_sizes(layer);
  const int64_t more = reorders_sum(layer, dtype)                     ? 5
                       : layer.kind == LayerKind::multihead_attention ? 6
                       : layer.kind == LayerKind::attention_core      ? 3
                                                                      : 4;
  const int64_t fused = more * sizes.state;
  const int64_t formed = sizes.state + (sizes.has_dropout ? 1 : 2) * sizes.scores;
  return Bytes(size_of(dtype)) * (sizes.state == 0    ? 0
                                  : sizes.scores == 0 ? fused
                                                      : std::max(fused, formed));
}

bool hands_gradient_on(const Layer& layer) {
  const auto* exchange = std::get_if<ExchangeArguments>(&layer.arguments);
  if (exchange != nullptr) {
    return exchange->backward == TensorExchange::none;
  }
  return layer.saves.is_view || layer.kind == LayerKind::bias ||
         layer.kind == LayerKind::positional_embedding;
}

}  // namespace lockstep
