#include "model/network/tensor_parallel/cut_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

CutLayer refused(std::string why_not, std::string remedy) {
  CutLayer cut;
  cut.why_not = std::move(why_not);
  cut.remedy = std::move(remedy);
  return cut;
}

/// Who cuts it knows what the size of the group is called, and says what to write.
CutLayer indivisible(std::string why_not, int64_t size) {
  CutLayer cut;
  cut.why_not = std::move(why_not);
  cut.divided = size;
  return cut;
}

/// As if a scenario had this layer with these arguments.
Layer built(const std::string& kind, std::vector<NamedArgument> arguments, const Shape& input,
            bool flash_attention = true) {
  const LayerDescription description{.kind = kind, .arguments = std::move(arguments)};
  const std::vector<LayerKindEntry> kinds = layer_kinds();
  const auto entry = std::ranges::find(kinds, kind, &LayerKindEntry::name);
  ensure(entry != kinds.end(), "a kind of the table");
  ArgumentReader reader(description, entry->positions);
  Layer layer;
  layer.input = input;
  entry->fill({layer.input, flash_attention}, reader, layer);
  ensure(reader.ok(), "a part of a layer is one, too");
  return layer;
}

/// Names, and what the scenario says of parameters, are those of the whole layer. `cuts`: of each.
Layer named_as(const Layer& whole, Layer part, const std::vector<std::optional<TensorCut>>& cuts) {
  part.name = whole.name;
  part.device = whole.device;
  part.tied_layer = whole.tied_layer;
  if (part.tied_layer) {
    part.parameters.erase(part.parameters.begin());
  }
  ensure(part.parameters.size() == cuts.size(), "every parameter is cut or whole");
  for (size_t i = 0; i < cuts.size(); ++i) {
    part.parameters[i].trainable = whole.parameters[i].trainable;
    part.parameters[i].initial = whole.parameters[i].initial;
    part.parameters[i].cut = cuts[i];
  }
  return part;
}

std::optional<TensorCut> cut_of(const ParameterTensor& tensor, size_t dimension, int32_t ranks) {
  return TensorCut{tensor.shape, dimension, ranks, 1};
}

CutLayer cut_linear(const Layer& whole, ParallelStyle::Kind kind, int32_t ranks) {
  const auto& linear = std::get<LinearArguments>(whole.arguments);
  const bool by_rows = kind == ParallelStyle::Kind::row;
  const int64_t size = by_rows ? linear.in_features : linear.out_features;
  if (size % ranks != 0) {
    return indivisible(fmt::format("its {} {} cannot be divided among {} ranks", size,
                                   by_rows ? "in_features" : "out_features", ranks),
                       size);
  }
  Shape input = whole.input;
  input.back() = by_rows ? size / ranks : input.back();
  const bool keeps_bias = linear.bias && !by_rows;
  CutLayer cut;
  std::vector<std::optional<TensorCut>> cuts;
  size_t next = 0;
  if (!whole.tied_layer) {
    cuts.push_back(cut_of(whole.parameters[next++], by_rows ? 1 : 0, ranks));
  }
  if (keeps_bias) {
    cuts.push_back(cut_of(whole.parameters[next], 0, ranks));
  }
  cut.layer = named_as(whole,
                       built("Linear",
                             {{"in_features", input.back()},
                              {"out_features", by_rows ? linear.out_features : size / ranks},
                              {"bias", keeps_bias}},
                             input),
                       cuts);
  if (linear.bias && by_rows) {
    // It costs nothing: it is the end of the product's kernel.
    Layer bias = built("Bias", {{"features", linear.out_features}}, cut.layer.output);
    bias.name = whole.name + " bias";
    bias.module = whole.name;
    bias.arguments = BiasArguments{linear.out_features, ranks};
    bias.parameters = {whole.parameters[next]};
    bias.work[static_cast<size_t>(Pass::forward)] = {.runs = false};
    bias.saves.is_view = true;
    cut.bias = std::move(bias);
  }
  return cut;
}

CutLayer cut_embedding(const Layer& whole, ParallelStyle::Kind kind, int32_t ranks) {
  const auto& embedding = std::get<EmbeddingArguments>(whole.arguments);
  const bool by_rows = kind == ParallelStyle::Kind::row;
  const int64_t size = by_rows ? embedding.num_embeddings : embedding.embedding_dim;
  if (size % ranks != 0) {
    return indivisible(fmt::format("its {} {} cannot be divided among {} ranks", size,
                                   by_rows ? "num_embeddings" : "embedding_dim", ranks),
                       size);
  }
  EmbeddingArguments part = embedding;
  (by_rows ? part.num_embeddings : part.embedding_dim) = size / ranks;
  part.is_part = by_rows;
  CutLayer cut;
  cut.layer = named_as(
      whole,
      built("Embedding",
            {{"num_embeddings", part.num_embeddings}, {"embedding_dim", part.embedding_dim}},
            whole.input),
      {cut_of(whole.parameters.front(), by_rows ? 0 : 1, ranks)});
  cut.layer.arguments = part;
  return cut;
}

/// The projections into the layer by columns, the last one by rows; a bias of the last one is a
/// share.
std::vector<std::optional<TensorCut>> projection_cuts(const Layer& whole, size_t parameters,
                                                      int32_t ranks) {
  std::vector<std::optional<TensorCut>> cuts;
  for (size_t i = 0; i + 1 < parameters; ++i) {
    cuts.push_back(cut_of(whole.parameters[i], 0, ranks));
  }
  cuts.push_back(cut_of(whole.parameters[parameters - 1], 1, ranks));
  return cuts;
}

CutLayer cut_attention(const Layer& whole, int32_t ranks) {
  const auto& attention = std::get<GroupedQueryArguments>(whole.arguments);
  if (attention.num_kv_heads % ranks != 0) {
    return indivisible(
        fmt::format("its {} heads of keys and values cannot be divided among {} ranks",
                    attention.num_kv_heads, ranks),
        attention.num_kv_heads);
  }
  if (attention.bias) {
    return refused("attention with a bias behind its heads is not cut by heads here",
                   "set bias: false; qkv_bias may be true");
  }
  if (attention.qk_norm_eps) {
    return refused("the norms of query and key, which all heads share, are not cut here",
                   "leave attention out of the plan");
  }
  const bool flash = !whole.attention_core || whole.attention_core->elements == 0;
  CutLayer cut;
  cut.layer = named_as(whole,
                       built("GroupedQueryAttention",
                             {{"embed_dim", attention.embed_dim},
                              {"num_heads", attention.num_heads / ranks},
                              {"num_kv_heads", attention.num_kv_heads / ranks},
                              {"head_dim", attention.head_dim},
                              {"rope_theta", attention.rope_theta},
                              {"sliding_window", attention.sliding_window},
                              {"bias", false},
                              {"qkv_bias", attention.qkv_bias}},
                             whole.input, flash),
                       projection_cuts(whole, whole.parameters.size(), ranks));
  return cut;
}

CutLayer cut_gated(const Layer& whole, int32_t ranks) {
  const auto& gated = std::get<SwigluArguments>(whole.arguments);
  if (gated.hidden_dim % ranks != 0) {
    return indivisible(
        fmt::format("its hidden_dim {} cannot be divided among {} ranks", gated.hidden_dim, ranks),
        gated.hidden_dim);
  }
  if (gated.bias) {
    return refused("a gated feed-forward with a bias is not cut here", "set bias: false");
  }
  CutLayer cut;
  cut.layer = named_as(whole,
                       built("SwiGLU",
                             {{"embed_dim", gated.embed_dim},
                              {"hidden_dim", gated.hidden_dim / ranks},
                              {"bias", false},
                              {"activation", std::string(gated.gelu ? "gelu_tanh" : "silu")}},
                             whole.input),
                       projection_cuts(whole, whole.parameters.size(), ranks));
  return cut;
}

}  // namespace

bool is_fused_attention(LayerKind kind) {
  return kind == LayerKind::causal_self_attention || kind == LayerKind::multihead_attention;
}

namespace {

/// Scores and weighted sum of some heads, of [positions, 3 width] (attention_layers.cpp).
Layer core_of(const Layer& whole, int32_t ranks) {
  const auto& attention = std::get<AttentionArguments>(whole.arguments);
  const AttentionCore& core = *whole.attention_core;
  const int64_t width = attention.embed_dim / ranks;
  Layer layer{.kind = LayerKind::attention_core};
  layer.name = whole.name + " core";
  layer.arguments = AttentionArguments{.embed_dim = width,
                                       .num_heads = attention.num_heads / ranks,
                                       .dropout = attention.dropout,
                                       .bias = false,
                                       .causal = whole.kind == LayerKind::causal_self_attention};
  layer.input = {whole.input[0], 3 * width};
  layer.output = {whole.input[0], width};
  const Flops scores = core.work.flops / ranks;
  const int64_t moved = core.work.elements / ranks;
  layer.work = {Work{scores, moved}, Work{scores * 2, 2 * moved}, Work{.runs = false}};
  layer.saves.input = true;
  layer.saves.elements = core.elements / ranks;
  layer.saves.fixed = core.fixed / ranks;
  layer.attention_core =
      AttentionCore{Work{scores, moved}, layer.saves.elements, layer.saves.fixed};
  return layer;
}

}  // namespace

CutAttention cut_fused_attention(const Layer& whole, int32_t ranks) {
  const auto& attention = std::get<AttentionArguments>(whole.arguments);
  CutAttention cut;
  if (attention.num_heads % ranks != 0) {
    cut.why_not =
        fmt::format("its {} heads cannot be divided among {} ranks", attention.num_heads, ranks);
    cut.divided = attention.num_heads;
    return cut;
  }
  const int64_t width = attention.embed_dim;
  const auto linear = [&](int64_t in, int64_t out, bool bias, const Shape& input) {
    return built("Linear", {{"in_features", in}, {"out_features", out}, {"bias", bias}}, input);
  };
  size_t next = 0;
  const auto take_parameter = [&](ParameterTensor& into, std::optional<TensorCut> how) {
    const ParameterTensor& from = whole.parameters[next++];
    into.name = from.name;
    into.trainable = from.trainable;
    into.initial = from.initial;
    into.cut = std::move(how);
  };
  const auto by_heads = [&] {
    const ParameterTensor& from = whole.parameters[next];
    return TensorCut{from.shape, 0, ranks, 3};
  };
  cut.projection = linear(width, 3 * width / ranks, attention.bias, whole.input);
  cut.projection.name = cut.projection.module = whole.name;
  for (ParameterTensor& parameter : cut.projection.parameters) {
    take_parameter(parameter, by_heads());
  }
  cut.core = core_of(whole, ranks);
  cut.output = linear(width / ranks, width, false, cut.core.output);
  cut.output.name = whole.name + " output";
  cut.output.module = whole.name;
  take_parameter(cut.output.parameters.front(),
                 TensorCut{whole.parameters[next].shape, 1, ranks, 1});
  if (attention.bias) {
    Layer bias = built("Bias", {{"features", width}}, cut.output.output);
    bias.name = whole.name + " bias";
    bias.module = whole.name;
    take_parameter(bias.parameters.front(), std::nullopt);
    bias.work[static_cast<size_t>(Pass::forward)] = {.runs = false};
    bias.saves.is_view = true;
    cut.bias = std::move(bias);
  }
  for (Layer* layer : {&cut.projection, &cut.core, &cut.output}) {
    layer->device = whole.device;
  }
  return cut;
}

namespace {

/// The products that lead into grouped attention, and the turns of query and key
/// (decoder_layers.cpp).
Layer projections_into(const Layer& whole, const GroupedQueryArguments& attention) {
  const int64_t positions = whole.input[0];
  const int64_t query = positions * attention.query_width();
  const int64_t key = positions * attention.key_width();
  const int64_t state = elements_of(whole.input);
  Layer layer{.kind = LayerKind::attention_projections};
  layer.name = layer.module = whole.name;
  layer.arguments = attention;
  layer.input = whole.input;
  layer.output = {positions, attention.query_width() + 2 * attention.key_width()};
  const Flops products = Flops(2) * (query + 2 * key) * attention.embed_dim;
  const int64_t moved = state + (query + 2 * key) + 2 * (query + key);
  layer.work = {Work{products, moved}, Work{products, moved},
                Work{products, state + query + 2 * key}};
  layer.saves.input = true;
  layer.parameters.assign(whole.parameters.begin(),
                          whole.parameters.end() - (attention.bias ? 2 : 1));
  return layer;
}

}  // namespace

CutAttention cut_grouped_attention(const Layer& whole) {
  const auto& attention = std::get<GroupedQueryArguments>(whole.arguments);
  CutAttention cut;
  cut.projection = projections_into(whole, attention);
  cut.core = {.kind = LayerKind::attention_core};
  cut.core.name = whole.name + " core";
  cut.core.arguments = attention;
  cut.core.input = cut.projection.output;
  cut.core.output = {whole.input[0], attention.query_width()};
  cut.core.work[static_cast<size_t>(Pass::forward)] = whole.attention_core->work;
  cut.core.attention_core = whole.attention_core;
  cut.output = built("Linear",
                     {{"in_features", attention.query_width()},
                      {"out_features", attention.embed_dim},
                      {"bias", attention.bias}},
                     cut.core.output);
  cut.output.name = whole.name + " output";
  cut.output.module = whole.name;
  cut.output.parameters.assign(whole.parameters.end() - (attention.bias ? 2 : 1),
                               whole.parameters.end());
  for (Layer* layer : {&cut.projection, &cut.core, &cut.output}) {
    layer->device = whole.device;
  }
  return cut;
}

CutLayer cut_by(const Layer& whole, ParallelStyle::Kind kind, int32_t ranks) {
  if (whole.kind == LayerKind::linear) {
    return cut_linear(whole, kind, ranks);
  }
  if (whole.kind == LayerKind::embedding) {
    return cut_embedding(whole, kind, ranks);
  }
  return refused(
      "only Linear and Embedding can be cut by columns or rows (NotImplementedError of "
      "torch)",
      "leave it out of the plan, or name a Linear in it");
}

CutLayer cut_inside(const Layer& whole, int32_t ranks) {
  return whole.kind == LayerKind::swiglu ? cut_gated(whole, ranks) : cut_attention(whole, ranks);
}

bool has_projections(LayerKind kind) {
  return kind == LayerKind::grouped_query_attention || kind == LayerKind::swiglu;
}

std::vector<std::string> projections_of(LayerKind kind) {
  if (kind == LayerKind::swiglu) {
    return {"gate_proj", "up_proj", "down_proj"};
  }
  return {"q_proj", "k_proj", "v_proj", "o_proj"};
}

Layer of_part(const Layer& whole, size_t dimension, int32_t ranks) {
  Layer part = whole;
  part.input.at(dimension) /= ranks;
  part.output.at(dimension) /= ranks;
  for (Work& work : part.work) {
    work.flops = work.flops / ranks;
    work.elements /= ranks;
  }
  part.saves.elements /= ranks;
  part.saves.fixed = part.saves.fixed / ranks;
  return part;
}

bool treats_positions_alike(LayerKind kind) {
  return treats_elements_alike(kind) || kind == LayerKind::linear ||
         kind == LayerKind::layer_norm || kind == LayerKind::rms_norm || kind == LayerKind::swiglu;
}

}  // namespace lockstep
