#include "properties/logged/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/network/attention_part.hpp"
#include "model/network/window_shape.hpp"

namespace lockstep {

namespace {

constexpr int64_t scaling = 8;
constexpr int64_t optimizer_operations = 16;

// Rows of samples that one weight meets: one a sample, or one a position of a sequence or image.
int64_t positions_of(const Layer& layer) {
  if (layer.kind == LayerKind::conv_transpose2d) {
    return std::max<int64_t>(1, elements_of(layer.output) / layer.output[0]);
  }
  if (const auto* conv = std::get_if<Conv2dArguments>(&layer.arguments)) {
    return std::max<int64_t>(1, elements_of(layer.output) / conv->out_channels);
  }
  const int64_t width = layer.input.empty() ? 1 : layer.input.back();
  return std::max<int64_t>(1, elements_of(layer.input) / std::max<int64_t>(1, width));
}

int64_t of_convolution(const Conv2dArguments& conv) {
  const int64_t window = conv.kernel_size[0] * conv.kernel_size[1];
  return window * (conv.in_channels + conv.out_channels) / conv.groups + 1;
}

int64_t of_softmax(const Layer& layer) {
  const auto dimension = static_cast<size_t>(std::get<SoftmaxArguments>(layer.arguments).dimension);
  return 3 * layer.input.at(dimension) + 2 * scaling;
}

int64_t of_group_norm(const Layer& layer) {
  const auto& norm = std::get<GroupNormArguments>(layer.arguments);
  return 4 * elements_of(layer.input) / norm.num_groups + 2 * scaling;
}

int64_t of_grouped_attention(const Layer& layer);

int64_t of_attention(const Layer& layer) {
  if (std::holds_alternative<GroupedQueryArguments>(layer.arguments)) {
    return of_grouped_attention(layer);
  }
  const auto& attention = std::get<AttentionArguments>(layer.arguments);
  const int64_t width = attention.embed_dim;
  const int64_t head = width / attention.num_heads;
  const int64_t positions = positions_of_sample(layer);
  const int64_t forward = 2 * (width + 1) + head + 2 * positions + 2 * scaling;
  const int64_t backward = 4 * width + 2 * head + 4 * positions + 2 * scaling;
  return forward + backward;
}

int64_t of_grouped_attention(const Layer& layer) {
  const auto& attention = std::get<GroupedQueryArguments>(layer.arguments);
  const int64_t positions = positions_of_sample(layer);
  const int64_t inner = attention.embed_dim + attention.query_width() + attention.key_width();
  const int64_t forward = inner + attention.head_dim + 2 * positions + 3 * scaling;
  const int64_t shared = attention.num_heads / attention.num_kv_heads;
  return 3 * forward + 2 * shared * positions;
}

/// A product, and the sum of products that is the gradient of a factor.
int64_t of_products(const Shape& whole, int64_t samples) {
  return 2 + samples * elements_of(whole);
}

// As of_attention; each number of the table is in every window.
int64_t of_window_attention(const Layer& layer, int64_t samples) {
  const auto& attention = std::get<WindowAttentionArguments>(layer.arguments);
  const WindowShape shape = window_shape(attention, layer.input);
  const int64_t head = shape.head_width();
  const int64_t forward = 2 * (shape.channels + 1) + head + 2 * shape.area() + 3 * scaling;
  const int64_t backward = 4 * shape.channels + 2 * head + 4 * shape.area() + 2 * scaling;
  return forward + backward + samples * shape.windows() * shape.area();
}

/// As of_attention, with keys of the tensor beside, whose gradient is one sum over all its readers.
int64_t of_aside_attention(const Layer& layer) {
  const auto& attention = std::get<AsideAttentionArguments>(layer.arguments);
  const bool is_cross = layer.kind == LayerKind::cross_attention;
  const int64_t keys = is_cross ? layer.aside->shape[0] : layer.input[0];
  const int64_t inner = attention.embed_dim + attention.source_dim + 2 * attention.width();
  const int64_t forward = inner + attention.head_dim + 2 * keys + 3 * scaling;
  return 3 * forward + 2 * layer.input[0] + 2;
}

int64_t of_lstm(const Layer& layer) {
  const auto& lstm = std::get<LstmArguments>(layer.arguments);
  const int64_t gates = 4 * lstm.hidden_size;
  const int64_t step = lstm.input_size + lstm.hidden_size + gates + 4 * scaling;
  return 2 * lstm.num_layers * layer.input[0] * step;
}

// The router's product and softmax, the experts' products, and the weighted sum; the same back.
int64_t of_mixture(const Layer& layer) {
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  const int64_t routing = mixture.embed_dim + 2 * mixture.num_experts + 2 * scaling;
  const int64_t expert = 3 * (mixture.embed_dim + mixture.hidden_dim) + 4 * scaling;
  return 2 * routing + expert + 4 * mixture.top_k;
}

// A window of an average, forth and back; adaptive ones reach beyond their part on both sides.
int64_t of_average(const Layer& layer) {
  Pair window{1, 1};
  if (const auto* pool = std::get_if<Pool2dArguments>(&layer.arguments)) {
    window = pool->kernel_size;
  } else {
    window = {layer.input[1] / layer.output[1] + 2, layer.input[2] / layer.output[2] + 2};
  }
  return 2 * (window[0] * window[1] + 1);
}

int64_t forward_and_backward(const Layer& layer, int64_t samples) {
  switch (layer.kind) {
    case LayerKind::linear: {
      const auto& linear = std::get<LinearArguments>(layer.arguments);
      return linear.in_features + 1 + linear.out_features;
    }
    case LayerKind::bias:
    case LayerKind::positional_embedding:
    case LayerKind::residual_add: return 1;
    case LayerKind::leaky_relu: return 2;
    case LayerKind::gelu:
    case LayerKind::silu:
    case LayerKind::sigmoid:
    case LayerKind::tanh: return 2 * scaling;
    case LayerKind::hardswish:
    case LayerKind::hardsigmoid: return 6;
    case LayerKind::layer_scale: return of_products(layer.output, samples);
    case LayerKind::residual_multiply:
      return 1 + of_products(layer.output, 1) / std::max<int64_t>(1, elements_of(layer.input));
    case LayerKind::patch_merging: return 3;
    case LayerKind::scale: return 2;
    case LayerKind::relative_position_bias: return 1 + samples * layer.input[0] * layer.input[0];
    case LayerKind::biased_attention:
    case LayerKind::cross_attention: return of_aside_attention(layer);
    case LayerKind::window_attention: return of_window_attention(layer, samples);
    case LayerKind::softmax: return of_softmax(layer);
    case LayerKind::group_norm: return of_group_norm(layer);
    case LayerKind::rms_norm: {
      const auto& norm = std::get<RmsNormArguments>(layer.arguments);
      return 4 * elements_of(norm.normalized_shape) + 2 * scaling;
    }
    case LayerKind::layer_norm: {
      const auto& norm = std::get<LayerNormArguments>(layer.arguments);
      return 4 * elements_of(norm.normalized_shape) + 2 * scaling;
    }
    case LayerKind::conv_transpose2d:
      return of_convolution(std::get<ConvTranspose2dArguments>(layer.arguments).mirrored);
    case LayerKind::conv1d:
    case LayerKind::conv2d: return of_convolution(std::get<Conv2dArguments>(layer.arguments));
    case LayerKind::avg_pool2d:
    case LayerKind::adaptive_avg_pool2d: return of_average(layer);
    case LayerKind::attention_core:
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention: return of_attention(layer);
    case LayerKind::attention_projections:
    case LayerKind::grouped_query_attention: return of_grouped_attention(layer);
    case LayerKind::swiglu: {
      const auto& gated = std::get<SwigluArguments>(layer.arguments);
      return 3 * (gated.embed_dim + gated.hidden_dim) + 4 * scaling;
    }
    case LayerKind::mixture_of_experts: return of_mixture(layer);
    case LayerKind::lstm: return of_lstm(layer);
    case LayerKind::upsample: {
      const Pair& factor = std::get<UpsampleArguments>(layer.arguments).scale_factor;
      return factor[0] * factor[1];
    }
    case LayerKind::batch_norm: return 4 * samples * elements_of(layer.input) + 2 * scaling;
    default: return is_loss(layer.kind) ? elements_of(layer.input) + scaling : 0;
  }
}

int64_t narrow_of(LayerKind kind) {
  constexpr int64_t of_product = 2 * 3 + 1;
  switch (kind) {
    case LayerKind::linear:
    case LayerKind::conv1d:
    case LayerKind::conv2d:
    case LayerKind::conv_transpose2d: return of_product;
    case LayerKind::swiglu:
    case LayerKind::mixture_of_experts:
    case LayerKind::lstm: return 2 * of_product + 2 * 3;
    case LayerKind::window_attention:
    case LayerKind::biased_attention:
    case LayerKind::cross_attention:
    case LayerKind::attention_core:
    case LayerKind::attention_projections:
    case LayerKind::grouped_query_attention:
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention: return 2 * of_product + 2 * 3;
    default: return 2;
  }
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::fp64: return 0x1p-53;
    case DType::fp32: return 0x1p-24;
    case DType::bf16: return 0x1p-8;
    case DType::fp16: return 0x1p-11;
    case DType::int64:
    case DType::int32:
    case DType::uint8: return 0;
  }
  return 0;
}

double gamma(int64_t operations, DType dtype) {
  const double product = static_cast<double>(operations) * unit_roundoff(dtype);
  return product >= 1 ? std::numeric_limits<double>::infinity() : product / (1 - product);
}

bool beyond_rounding(double here, double there, double bound) {
  if (here == there) {
    return false;
  }
  // A NaN on one side compares false with every bound.
  return (std::isfinite(here) || std::isfinite(there)) && !(std::abs(here - there) <= bound);
}

int64_t rounded_operations(const Network& network, const TrainingSize& size) {
  int64_t chain = forward_and_backward(network.loss, size.samples);
  int64_t positions = 1;
  for (const Layer& layer : network.layers) {
    chain += forward_and_backward(layer, size.samples);
    positions = std::max(positions, positions_of(layer));
  }
  chain += size.samples * positions + size.parts + 2 + optimizer_operations;
  if (size.clips_norm) {
    chain += network.trainable_elements() + scaling;
  }
  return chain * std::max<int64_t>(1, size.steps);
}

int64_t narrow_operations(const Network& network) {
  int64_t chain = 0;
  for (const Layer& layer : network.layers) {
    chain += narrow_of(layer.kind);
  }
  return chain;
}

}  // namespace lockstep
