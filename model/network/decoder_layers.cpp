// Layers of Llama and its kin: GroupedQueryAttention (rotary, causal) and SwiGLU.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

/// Work over s positions of width e, h query heads and k key heads of width d (Narayanan et al.
/// 2021, appendix, with narrower keys and values): projections 2 s e (2 h + 2 k) d, scores and
/// weighted sum 4 s w h d, where a position counts w others: all s of them, since a causal mask is
/// not deducted in published model FLOPs, or those in the sliding window.
void price_grouped_attention(const LayerContext& context, const GroupedQueryArguments& attention,
                             Layer& layer) {
  const int64_t positions = context.input[0];
  const int64_t query = narrow_to_int64(Int128{positions} * attention.query_width());
  const int64_t key = narrow_to_int64(Int128{positions} * attention.key_width());
  const int64_t state = elements_of(context.input);
  const int64_t seen =
      attention.sliding_window > 0 ? std::min(attention.sliding_window, positions) : positions;
  const Flops projections(narrow_to_int64(Int128{4} * (Int128{query} + key) * attention.embed_dim));
  const Flops scores(narrow_to_int64(Int128{4} * query * seen));
  const int64_t matrix = context.flash_attention ? 0 : attention.num_heads * positions * positions;
  // Each projection reads and writes once, the rotation reads and writes query and key, the core
  // reads query, key and value and writes the weighted sum.
  const int64_t moved = 2 * state + (query + 2 * key) + 2 * (query + key) + (query + 2 * key) +
                        2 * query + 4 * matrix;
  layer.work = {Work{projections + scores, moved}, Work{projections + scores * 2, 2 * moved},
                Work{projections, 2 * state + 2 * query + 2 * key}};
  // Kept beside the input: rotated query and key, value, and the weighted sum. The rotation itself
  // needs only its sines and cosines, which all samples share. Then as CausalSelfAttention.
  layer.saves.input = true;
  layer.saves.elements = 2 * query + 2 * key + matrix;
  if (context.flash_attention) {
    layer.saves.fixed = 4_B * (attention.num_heads * positions);
  }
  layer.attention_core = AttentionCore{.work = Work{scores, 2 * query + 2 * key + 4 * matrix},
                                       .elements = matrix,
                                       .fixed = layer.saves.fixed};
}

bool are_possible_heads(const GroupedQueryArguments& attention, ArgumentReader& arguments) {
  for (const auto& [name, value] :
       {std::pair("num_heads", attention.num_heads), std::pair("head_dim", attention.head_dim),
        std::pair("num_kv_heads", attention.num_kv_heads)}) {
    if (!is_positive(value, name, arguments)) {
      return false;
    }
  }
  if (attention.num_heads % attention.num_kv_heads != 0) {
    arguments.complain(
        fmt::format("num_kv_heads {} does not divide num_heads {}", attention.num_kv_heads,
                    attention.num_heads),
        "each key head serves as many query heads: choose num_kv_heads that divides num_heads");
    return false;
  }
  if (attention.head_dim % 2 != 0) {
    arguments.complain(fmt::format("head_dim is {}", attention.head_dim),
                       "the rotary embedding turns pairs: choose an even head_dim");
    return false;
  }
  if (!(attention.rope_theta > 0) || attention.sliding_window < 0) {
    arguments.complain(fmt::format("rope_theta is {} and sliding_window {}", attention.rope_theta,
                                   attention.sliding_window),
                       "write rope_theta above 0, and sliding_window 0 (all) or above");
    return false;
  }
  return true;
}

bool has_possible_scores(const LayerContext& context, const GroupedQueryArguments& attention,
                         ArgumentReader& arguments) {
  const Int128 scores = Int128{attention.num_heads} * context.input[0] * context.input[0];
  const Int128 width = Int128{attention.num_heads} * attention.head_dim;
  if (scores <= most_elements &&
      width * std::max(context.input[0], context.input[1]) <= Int128{most_elements}) {
    return true;
  }
  arguments.complain(fmt::format("{} heads of {} over {} positions are beyond all memory",
                                 attention.num_heads, attention.head_dim, context.input[0]),
                     "write fewer heads or a shorter sequence");
  return false;
}

void add_projection(const char* name, int64_t out, int64_t in, bool bias, Layer& layer) {
  layer.parameters.push_back({fmt::format("{}.weight", name), {out, in}});
  if (bias) {
    layer.parameters.push_back({fmt::format("{}.bias", name), {out}});
  }
}

/// Whether embed_dim is the input's width.
bool has_width(const LayerContext& context, int64_t embed_dim, ArgumentReader& arguments) {
  const int64_t width = context.input.empty() ? 1 : context.input.back();
  if (width == embed_dim) {
    return true;
  }
  arguments.complain(
      fmt::format("embed_dim is {}, but the input has shape {}", embed_dim, text_of(context.input)),
      fmt::format("set embed_dim to {}", width));
  return false;
}

/// Query and key of each head are read and written once more, as are their gradients, and kept
/// before the norm, with the fp32 root mean square of each head.
void add_head_norms(int64_t positions, const GroupedQueryArguments& attention, Layer& layer) {
  layer.parameters.push_back({"q_norm.weight", {attention.head_dim}});
  layer.parameters.push_back({"k_norm.weight", {attention.head_dim}});
  const int64_t normed = positions * (attention.query_width() + attention.key_width());
  layer.work[static_cast<size_t>(Pass::forward)].elements += 2 * normed;
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements += 3 * normed;
  layer.work[static_cast<size_t>(Pass::weight_gradient)].elements += 2 * normed;
  layer.saves.elements += normed;
  layer.saves.fixed += 4_B * (normed / attention.head_dim);
}

void fill_grouped_query(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  GroupedQueryArguments attention;
  attention.embed_dim = arguments.integer("embed_dim");
  attention.num_heads = arguments.integer("num_heads");
  attention.num_kv_heads = arguments.integer("num_kv_heads", attention.num_heads);
  const int64_t split =
      attention.num_heads > 0 ? attention.embed_dim / attention.num_heads : attention.embed_dim;
  const bool is_split = !arguments.has("head_dim");
  attention.head_dim = arguments.integer("head_dim", split);
  attention.rope_theta = arguments.number("rope_theta", 10000);
  attention.sliding_window = arguments.integer("sliding_window", 0);
  attention.bias = arguments.boolean("bias", false);
  attention.qkv_bias = arguments.boolean("qkv_bias", attention.bias);
  if (arguments.has("qk_norm_eps")) {
    attention.qk_norm_eps = arguments.number("qk_norm_eps", 1e-6);
  }
  layer.kind = LayerKind::grouped_query_attention;
  layer.arguments = attention;
  if (!arguments.ok() || !has_dimensions(context, 2, "[positions, features]", arguments) ||
      !has_width(context, attention.embed_dim, arguments)) {
    return;
  }
  if (is_split && attention.num_heads > 0 && attention.embed_dim % attention.num_heads != 0) {
    arguments.complain(fmt::format("{} heads do not divide embed_dim {}", attention.num_heads,
                                   attention.embed_dim),
                       "choose num_heads that divides embed_dim, or give head_dim");
    return;
  }
  if (!are_possible_heads(attention, arguments) ||
      !has_possible_scores(context, attention, arguments)) {
    return;
  }
  layer.output = context.input;
  const bool bias = attention.qkv_bias;
  add_projection("q_proj", attention.query_width(), attention.embed_dim, bias, layer);
  add_projection("k_proj", attention.key_width(), attention.embed_dim, bias, layer);
  add_projection("v_proj", attention.key_width(), attention.embed_dim, bias, layer);
  add_projection("o_proj", attention.embed_dim, attention.query_width(), attention.bias, layer);
  price_grouped_attention(context, attention, layer);
  if (attention.qk_norm_eps) {
    add_head_norms(context.input[0], attention, layer);
  }
}

/// Three products of 2 e f for each row. Beside them the gate is read and its SiLU written, both
/// factors are read and the product written. Autograd keeps what each of these kernels reads: the
/// input, the gate, its SiLU, the other factor and the product.
void fill_swiglu(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  SwigluArguments gated{.embed_dim = arguments.integer("embed_dim"),
                        .hidden_dim = arguments.integer("hidden_dim"),
                        .bias = arguments.boolean("bias", false)};
  const std::string activation = arguments.text("activation", "silu");
  if (activation != "silu" && activation != "gelu_tanh") {
    arguments.complain(fmt::format("SwiGLU has no activation `{}`", activation),
                       "write silu, or gelu_tanh: then the layer is what papers call GeGLU");
  }
  gated.gelu = activation == "gelu_tanh";
  layer.kind = LayerKind::swiglu;
  layer.arguments = gated;
  if (!arguments.ok() || !is_positive(gated.embed_dim, "embed_dim", arguments) ||
      !is_positive(gated.hidden_dim, "hidden_dim", arguments) ||
      !has_width(context, gated.embed_dim, arguments)) {
    return;
  }
  layer.output = context.input;
  if (Int128{elements_of(context.input) / gated.embed_dim} * gated.hidden_dim > most_elements) {
    arguments.complain(fmt::format("hidden_dim is {}", gated.hidden_dim), "write smaller sizes");
    return;
  }
  add_projection("gate_proj", gated.hidden_dim, gated.embed_dim, gated.bias, layer);
  add_projection("up_proj", gated.hidden_dim, gated.embed_dim, gated.bias, layer);
  add_projection("down_proj", gated.embed_dim, gated.hidden_dim, gated.bias, layer);
  const int64_t state = elements_of(context.input);
  const int64_t hidden = state / gated.embed_dim * gated.hidden_dim;
  const Flops products(narrow_to_int64(Int128{6} * state * gated.hidden_dim));
  layer.work = {Work{products, 3 * state + 8 * hidden}, Work{products, 6 * state + 12 * hidden},
                Work{products, 3 * state + 3 * hidden}};
  layer.saves.input = true;
  layer.saves.elements = 4 * hidden;
}

}  // namespace

std::vector<LayerKindEntry> decoder_layer_kinds() {
  return {
      {"GroupedQueryAttention",
       {"embed_dim", "num_heads", "num_kv_heads", "head_dim", "rope_theta", "sliding_window",
        "bias", "qkv_bias", "qk_norm_eps"},
       fill_grouped_query},
      {"SwiGLU", {"embed_dim", "hidden_dim", "bias", "activation"}, fill_swiglu},
  };
}

}  // namespace lockstep
