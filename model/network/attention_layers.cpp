// Self-attention: MultiheadAttention and CausalSelfAttention.
#include <fmt/format.h>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

/// Work of one self-attention over s positions of width e, after Narayanan et al. 2021 (appendix):
/// projections 8 s e^2, scores and weighted sum 4 s^2 e; a causal mask is not deducted, which is
/// the convention of published model FLOPs. Backward costs the projections once for each gradient
/// and twice the scores for the input's.
void price_attention(const LayerContext& context, const AttentionArguments& attention,
                     Layer& layer) {
  const int64_t positions = context.input[0];
  const int64_t width = attention.embed_dim;
  const Flops projections(narrow_to_int64(Int128{8} * positions * width * width));
  const Flops scores(narrow_to_int64(Int128{4} * positions * positions * width));
  const int64_t state = elements_of(context.input);
  const int64_t matrix = context.flash_attention ? 0 : attention.num_heads * positions * positions;
  // In, out, and each way once: query, key and value (3 states) and the weighted sum (1). Without
  // flash attention the scores are written and read around the softmax as well.
  const int64_t moved = 10 * state + 4 * matrix;
  layer.work = {Work{projections + scores, moved}, Work{projections + scores * 2, 2 * moved},
                Work{projections, 6 * state}};
  // Kept beside the input (Korthikanti et al. 2022): query, key, value and the weighted sum; then
  // either flash attention's fp32 log-sum of each row, or the probabilities of every head and, with
  // dropout, its mask and its result.
  layer.saves.input = true;
  layer.saves.elements = 4 * state + matrix;
  if (context.flash_attention) {
    layer.saves.fixed = 4_B * (attention.num_heads * positions);
  } else if (attention.dropout > 0) {
    layer.saves.elements += matrix;
    layer.saves.fixed = 1_B * matrix;
  }
  // Query, key and value come from outside of the core, and the weighted sum is the input of the
  // output projection: these stay. The core reads three states, writes one, and passes the scores.
  layer.attention_core = AttentionCore{.work = Work{scores, 4 * state + 4 * matrix},
                                       .elements = layer.saves.elements - 4 * state,
                                       .fixed = layer.saves.fixed};
}

void fill_attention(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  AttentionArguments attention{.embed_dim = arguments.integer("embed_dim"),
                               .num_heads = arguments.integer("num_heads"),
                               .dropout = arguments.number("dropout", 0),
                               .bias = arguments.boolean("bias", true)};
  layer.arguments = attention;
  if (!arguments.ok() || !has_dimensions(context, 2, "[positions, features]", arguments) ||
      !is_positive(attention.num_heads, "num_heads", arguments)) {
    return;
  }
  if (context.input[1] != attention.embed_dim) {
    arguments.complain(fmt::format("embed_dim is {}, but the input has shape {}",
                                   attention.embed_dim, text_of(context.input)),
                       fmt::format("set embed_dim to {}", context.input[1]));
    return;
  }
  if (attention.embed_dim % attention.num_heads != 0) {
    arguments.complain(fmt::format("{} heads do not divide embed_dim {}", attention.num_heads,
                                   attention.embed_dim),
                       "choose num_heads that divides embed_dim");
    return;
  }
  layer.output = context.input;
  const Int128 scores = Int128{attention.num_heads} * context.input[0] * context.input[0];
  if (scores > most_elements) {
    arguments.complain(fmt::format("{} heads over {} positions have too many scores",
                                   attention.num_heads, context.input[0]),
                       "write a shorter sequence");
    return;
  }
  price_attention(context, attention, layer);
}

/// Input projection to query, key and value, then the output projection.
void add_projections(const char* in_weight, const char* in_bias, const char* out_weight,
                     const char* out_bias, Layer& layer) {
  const auto& attention = std::get<AttentionArguments>(layer.arguments);
  const int64_t width = attention.embed_dim;
  layer.parameters.push_back({in_weight, {3 * width, width}});
  if (attention.bias) {
    layer.parameters.push_back({in_bias, {3 * width}});
  }
  layer.parameters.push_back({out_weight, {width, width}});
  if (attention.bias) {
    layer.parameters.push_back({out_bias, {width}});
  }
}

void fill_multihead(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::multihead_attention;
  fill_attention(context, arguments, layer);
  arguments.only("add_bias_kv", false);
  arguments.only("add_zero_attn", false);
  arguments.boolean("batch_first", true);  // a sample has no batch dimension: nothing to choose
  if (arguments.ok()) {
    add_projections("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias", layer);
  }
}

void fill_causal(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::causal_self_attention;
  fill_attention(context, arguments, layer);
  if (arguments.ok()) {
    add_projections("c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias", layer);
  }
}

}  // namespace

std::vector<LayerKindEntry> attention_layer_kinds() {
  const std::vector<std::string_view> positions = {"embed_dim", "num_heads", "dropout", "bias"};
  return {
      {"MultiheadAttention", positions, fill_multihead},
      {"CausalSelfAttention", positions, fill_causal},
  };
}

}  // namespace lockstep
