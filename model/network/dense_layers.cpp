// Layers over the last dimension: Linear, Bias, LayerNorm, Embedding, PositionalEmbedding.
#include <fmt/format.h>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

/// The input's last dimension must be `features`.
bool ends_in(const LayerContext& context, int64_t features, std::string_view argument,
             ArgumentReader& arguments) {
  if (!context.input.empty() && context.input.back() == features) {
    return true;
  }
  const int64_t found = context.input.empty() ? 1 : context.input.back();
  arguments.complain(fmt::format("{} is {}, but the input has shape {}", argument, features,
                                 text_of(context.input)),
                     fmt::format("set {} to {} or change the layer before", argument, found));
  return false;
}

// y = x W^T: 2 * in * out operations for each row, the same again for each of the two gradients.
void fill_linear(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LinearArguments linear{.in_features = arguments.integer("in_features"),
                         .out_features = arguments.integer("out_features"),
                         .bias = arguments.boolean("bias", true)};
  layer.kind = LayerKind::linear;
  layer.arguments = linear;
  if (!arguments.ok() || !is_positive(linear.in_features, "in_features", arguments) ||
      !is_positive(linear.out_features, "out_features", arguments) ||
      !ends_in(context, linear.in_features, "in_features", arguments)) {
    return;
  }
  layer.output = context.input;
  layer.output.back() = linear.out_features;
  layer.parameters.push_back({"weight", {linear.out_features, linear.in_features}});
  if (linear.bias) {
    layer.parameters.push_back({"bias", {linear.out_features}});
  }
  if (!has_possible_size(layer, arguments)) {
    return;
  }
  const Flops product(
      narrow_to_int64(Int128{2} * elements_of(context.input) * linear.out_features));
  const int64_t moved = elements_of(context.input) + elements_of(layer.output);
  layer.work = {Work{product, moved}, Work{product, moved}, Work{product, moved}};
  layer.saves.input = true;
}

void fill_bias(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const BiasArguments bias{arguments.integer("features")};
  layer.kind = LayerKind::bias;
  layer.arguments = bias;
  if (!arguments.ok() || !ends_in(context, bias.features, "features", arguments)) {
    return;
  }
  fill_pointwise(context, layer);
  layer.parameters.push_back({"bias", {bias.features}});
  // The input's gradient is the output's: no kernel.
  layer.work[static_cast<size_t>(Pass::input_gradient)] = {.runs = false};
  layer.work[static_cast<size_t>(Pass::weight_gradient)] = {.elements = elements_of(layer.output)};
}

void fill_layer_norm(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LayerNormArguments norm{.normalized_shape = arguments.shape("normalized_shape"),
                          .eps = arguments.number("eps", 1e-5),
                          .elementwise_affine = arguments.boolean("elementwise_affine", true),
                          .bias = arguments.boolean("bias", true)};
  layer.kind = LayerKind::layer_norm;
  layer.arguments = norm;
  if (!arguments.ok()) {
    return;
  }
  const Shape& input = context.input;
  const Shape& tail = norm.normalized_shape;
  if (tail.size() > input.size() || !std::equal(tail.rbegin(), tail.rend(), input.rbegin())) {
    arguments.complain(
        fmt::format("normalized_shape {} is not the end of the input's shape {}", text_of(tail),
                    text_of(input)),
        fmt::format("set normalized_shape to [{}]", input.empty() ? 1 : input.back()));
    return;
  }
  fill_pointwise(context, layer);
  if (norm.elementwise_affine) {
    layer.parameters.push_back({"weight", tail});
    if (norm.bias) {
      layer.parameters.push_back({"bias", tail});
    }
  }
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements = 3 * elements_of(input);
  layer.work[static_cast<size_t>(Pass::weight_gradient)].elements = 2 * elements_of(input);
  layer.saves.input = true;
  layer.saves.fixed = 8_B * (elements_of(input) / elements_of(tail));  // mean and 1/deviation, fp32
}

void fill_embedding(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const EmbeddingArguments embedding{arguments.integer("num_embeddings"),
                                     arguments.integer("embedding_dim")};
  arguments.only("norm_type", 2.0);
  arguments.only("scale_grad_by_freq", false);
  arguments.only("sparse", false);
  layer.kind = LayerKind::embedding;
  layer.arguments = embedding;
  if (!arguments.ok() || !is_positive(embedding.num_embeddings, "num_embeddings", arguments) ||
      !is_positive(embedding.embedding_dim, "embedding_dim", arguments)) {
    return;
  }
  layer.output = context.input;
  layer.output.push_back(embedding.embedding_dim);
  layer.parameters.push_back({"weight", {embedding.num_embeddings, embedding.embedding_dim}});
  if (!has_possible_size(layer, arguments)) {
    return;
  }
  const int64_t moved = 2 * elements_of(layer.output);  // only the rows that occur
  layer.work = {Work{.elements = moved}, Work{.runs = false}, Work{.elements = moved}};
  layer.saves.fixed = 8_B * elements_of(context.input);  // the indices
}

void fill_positional_embedding(const LayerContext& context, ArgumentReader& arguments,
                               Layer& layer) {
  const EmbeddingArguments embedding{arguments.integer("num_embeddings"),
                                     arguments.integer("embedding_dim")};
  layer.kind = LayerKind::positional_embedding;
  layer.arguments = embedding;
  if (!arguments.ok() || !has_dimensions(context, 2, "[positions, features]", arguments) ||
      !ends_in(context, embedding.embedding_dim, "embedding_dim", arguments)) {
    return;
  }
  if (context.input[0] > embedding.num_embeddings) {
    arguments.complain(fmt::format("{} positions, but only {} have an embedding", context.input[0],
                                   embedding.num_embeddings),
                       fmt::format("set num_embeddings to at least {}", context.input[0]));
    return;
  }
  fill_pointwise(context, layer);
  layer.parameters.push_back({"weight", {embedding.num_embeddings, embedding.embedding_dim}});
  layer.work[static_cast<size_t>(Pass::input_gradient)] = {.runs = false};
  layer.work[static_cast<size_t>(Pass::weight_gradient)] = {.elements = elements_of(layer.output)};
}

}  // namespace

std::vector<LayerKindEntry> dense_layer_kinds() {
  return {
      {"Linear", {"in_features", "out_features", "bias"}, fill_linear},
      {"Bias", {"features"}, fill_bias},
      {"LayerNorm", {"normalized_shape", "eps", "elementwise_affine", "bias"}, fill_layer_norm},
      {"Embedding", {"num_embeddings", "embedding_dim"}, fill_embedding},
      {"PositionalEmbedding", {"num_embeddings", "embedding_dim"}, fill_positional_embedding},
  };
}

}  // namespace lockstep
