// Layers of encoders and decoders: attention that reads what was put aside, T5's bias by relative
// position, some positions of a sequence, and a constant factor.
#include <fmt/format.h>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

void fill_scale(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::scale;
  layer.arguments = ScaleArguments{arguments.number("factor", 1)};
  fill_pointwise(context, layer);
}

// A view; backward fills what was not chosen with zeros.
void fill_positions(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const PositionsArguments positions{arguments.integer("first", 0), arguments.integer("count")};
  layer.kind = LayerKind::positions;
  layer.arguments = positions;
  be_view(context, layer);
  if (!arguments.ok()) {
    return;
  }
  const int64_t all = context.input.empty() ? 0 : context.input.front();
  if (positions.first < 0 || positions.count < 1 || positions.count > all - positions.first) {
    arguments.complain(fmt::format("positions {} to {} of an input of shape {}", positions.first,
                                   positions.first + positions.count - 1, text_of(context.input)),
                       fmt::format("choose positions from 0 to {}", all - 1));
    return;
  }
  layer.output.front() = positions.count;
  layer.work[static_cast<size_t>(Pass::input_gradient)] = {.elements = elements_of(context.input) +
                                                                       elements_of(layer.output)};
}

void fill_relative_position_bias(const LayerContext& context, ArgumentReader& arguments,
                                 Layer& layer) {
  const RelativePositionBiasArguments bias{
      arguments.integer("num_heads"), arguments.integer("num_buckets", 32),
      arguments.integer("max_distance", 128), arguments.boolean("bidirectional", true)};
  layer.kind = LayerKind::relative_position_bias;
  layer.arguments = bias;
  const int64_t exact = bias.num_buckets / (bias.bidirectional ? 4 : 2);
  if (!arguments.ok() || !has_dimensions(context, 2, "[positions, features]", arguments) ||
      !is_positive(bias.num_heads, "num_heads", arguments)) {
    return;
  }
  if (exact < 1 || bias.max_distance <= exact) {
    arguments.complain(
        fmt::format("num_buckets {} and max_distance {}", bias.num_buckets, bias.max_distance),
        "write at least 4 buckets, and a max_distance above half of a direction's");
    return;
  }
  const int64_t positions = context.input[0];
  layer.output = {bias.num_heads, positions, positions};
  if (!has_possible_size(layer, arguments)) {
    return;
  }
  // The rows of the table are read and written; with a mask of each sample that is one tensor for
  // each of them. Backward sums the gradients of all into the table.
  const int64_t matrix = elements_of(layer.output);
  layer.parameters.push_back({"weight", {bias.num_buckets, bias.num_heads}});
  layer.work = {Work{.elements = 2 * matrix}, Work{.runs = false}, Work{.elements = matrix}};
}

struct AttentionPrice {
  int64_t queries = 0;
  int64_t keys = 0;
  bool is_biased = false;
  bool forms_scores = true;
};

/// Projections 2 n e w for each of query and output, and 2 n s w for key and value; scores and
/// weighted sum 4 q k w. Backward as of self-attention (attention_layers.cpp).
void price_aside_attention(const AsideAttentionArguments& attention, const AttentionPrice& price,
                           Layer& layer) {
  const int64_t width = attention.width();
  const Flops projections(narrow_to_int64(
      Int128{4} * width *
      (Int128{price.queries} * attention.embed_dim + Int128{price.keys} * attention.source_dim)));
  const Flops scores(narrow_to_int64(Int128{4} * price.queries * price.keys * width));
  const int64_t query = price.queries * width;
  const int64_t key = price.keys * width;
  const int64_t formed = attention.num_heads * price.queries * price.keys;
  const int64_t matrix = price.forms_scores ? formed : 0;
  const int64_t ends = 2 * price.queries * attention.embed_dim +
                       (price.is_biased ? 0 : price.keys * attention.source_dim);
  const int64_t moved = ends + 4 * query + 4 * key + (price.is_biased ? 7 : 4) * matrix;
  layer.work = {Work{projections + scores, moved}, Work{projections + scores * 2, 2 * moved},
                Work{projections, ends + 2 * query + 2 * key}};
  layer.saves.input = true;
  layer.saves.branch = !price.is_biased;
  layer.saves.elements = 2 * query + 2 * key + matrix;
  layer.saves.fixed = price.forms_scores ? 0_B : 4_B * (attention.num_heads * price.queries);
}

bool has_possible_scores(const Layer& layer, int64_t heads, int64_t keys,
                         ArgumentReader& arguments) {
  if (Int128{heads} * layer.input[0] * keys > most_elements) {
    arguments.complain("attention over too many positions", "write shorter sequences");
    return false;
  }
  return true;
}

void add_products(const AsideAttentionArguments& attention, Layer& layer) {
  const int64_t width = attention.width();
  const auto add = [&](const char* name, int64_t in, int64_t out) {
    layer.parameters.push_back({std::string(name) + ".weight", {out, in}});
    if (attention.bias) {
      layer.parameters.push_back({std::string(name) + ".bias", {out}});
    }
  };
  add("q", attention.embed_dim, width);
  add("k", attention.source_dim, width);
  add("v", attention.source_dim, width);
  add("o", width, attention.embed_dim);
}

std::optional<AsideAttentionArguments> read_attention(const LayerContext& context,
                                                      ArgumentReader& arguments, Layer& layer) {
  AsideAttentionArguments attention{.embed_dim = arguments.integer("embed_dim"),
                                    .num_heads = arguments.integer("num_heads"),
                                    .head_dim = arguments.integer("head_dim", int64_t{0}),
                                    .scaled = arguments.boolean("scaled", true),
                                    .bias = arguments.boolean("bias", true)};
  if (!arguments.ok() || !has_dimensions(context, 2, "[positions, features]", arguments) ||
      !is_positive(attention.num_heads, "num_heads", arguments)) {
    return std::nullopt;
  }
  if (!arguments.has("head_dim")) {
    attention.head_dim = attention.embed_dim / attention.num_heads;
  }
  if (!is_positive(attention.head_dim, "head_dim", arguments)) {
    return std::nullopt;
  }
  if (context.input[1] != attention.embed_dim) {
    arguments.complain(fmt::format("embed_dim is {}, but the input has shape {}",
                                   attention.embed_dim, text_of(context.input)),
                       fmt::format("set embed_dim to {}", context.input[1]));
    return std::nullopt;
  }
  layer.output = context.input;
  return attention;
}

void fill_biased_attention(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::biased_attention;
  const bool causal = arguments.boolean("causal", false);
  std::optional<AsideAttentionArguments> attention = read_attention(context, arguments, layer);
  if (!attention) {
    return;
  }
  attention->causal = causal;
  attention->source_dim = attention->embed_dim;
  layer.arguments = *attention;
  const int64_t positions = context.input[0];
  const Shape wanted{attention->num_heads, positions, positions};
  if (*context.aside != wanted) {
    arguments.complain(
        fmt::format("the bias of {} heads over {} positions has shape {}, not {}",
                    attention->num_heads, positions, text_of(wanted), text_of(*context.aside)),
        "let RelativePositionBias make it, with as many heads");
    return;
  }
  if (has_possible_scores(layer, attention->num_heads, positions, arguments)) {
    add_products(*attention, layer);
    price_aside_attention(*attention, {positions, positions, true, true}, layer);
  }
}

void fill_cross_attention(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::cross_attention;
  std::optional<AsideAttentionArguments> attention = read_attention(context, arguments, layer);
  if (!attention) {
    return;
  }
  if (context.aside->size() != 2) {
    arguments.complain(
        fmt::format("CrossAttention reads [positions, features], not {}", text_of(*context.aside)),
        "let `of` of the Aside end in [positions, features]");
    return;
  }
  attention->source_dim = context.aside->back();
  layer.arguments = *attention;
  const int64_t keys = context.aside->front();
  if (has_possible_scores(layer, attention->num_heads, keys, arguments)) {
    add_products(*attention, layer);
    price_aside_attention(*attention, {context.input[0], keys, false, !context.flash_attention},
                          layer);
  }
}

}  // namespace

std::vector<LayerKindEntry> aside_layer_kinds() {
  return {
      {"Scale", {"factor"}, fill_scale},
      {"Positions", {"first", "count"}, fill_positions},
      {"RelativePositionBias",
       {"num_heads", "num_buckets", "max_distance", "bidirectional"},
       fill_relative_position_bias},
      {"BiasedAttention",
       {"embed_dim", "num_heads", "head_dim", "causal", "scaled", "bias", "aside"},
       fill_biased_attention,
       true},
      {"CrossAttention",
       {"embed_dim", "num_heads", "head_dim", "scaled", "bias", "aside"},
       fill_cross_attention,
       true},
  };
}

}  // namespace lockstep
