#include "backend/libtorch/layer_output.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "backend/libtorch/aside_output.hpp"
#include "backend/libtorch/decoder_output.hpp"
#include "backend/libtorch/window_output.hpp"
#include "model/core/ensure.hpp"
#include "model/network/arithmetic.hpp"
#include "model/network/output_type.hpp"

namespace lockstep::backend {

namespace {

at::ScalarType computing_type(const Layer& layer, const LayerTensors& tensors,
                              at::ScalarType output_type) {
  if (tensors.products_in && is_product(layer.kind)) {
    return *tensors.products_in;
  }
  at::ScalarType widest = layer.kind == LayerKind::batch_norm
                              ? c10::promoteTypes(output_type, at::kFloat)
                              : output_type;
  const auto widen = [&widest](const at::Tensor& tensor) {
    if (tensor.is_floating_point()) {
      widest = c10::promoteTypes(widest, tensor.scalar_type());
    }
  };
  widen(tensors.input);
  if (tensors.aside.defined()) {
    widen(tensors.aside);
  }
  for (const at::Tensor& parameter : tensors.parameters) {
    widen(parameter);
  }
  return widest;
}

/// A parameter that the layer may lack.
at::Tensor parameter_at(const LayerTensors& tensors, size_t index) {
  return index < tensors.parameters.size() ? tensors.parameters[index] : at::Tensor();
}

at::Tensor embedding(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<EmbeddingArguments>(layer.arguments);
  const int64_t rows = arguments.num_embeddings;
  const at::Tensor indices = tensors.input.to(at::kLong).sub(tensors.first_row);
  const at::Tensor outside = indices.lt(0).logical_or(indices.ge(rows));
  if (arguments.is_part) {
    return at::embedding(tensors.parameters.at(0), indices.masked_fill(outside, 0))
        .masked_fill(outside.unsqueeze(-1), 0);
  }
  const at::Tensor strange = outside.flatten();
  if (strange.any().item<bool>()) {
    const int64_t position = strange.to(at::kByte).argmax().item<int64_t>();
    const int64_t row = indices.flatten()[position].item<int64_t>();
    throw ArithmeticError(
        fmt::format("index {} at position {} of an embedding of {} rows", row, position, rows),
        fmt::format("keep indices in 0 .. {} or set num_embeddings to {}", rows - 1, row + 1));
  }
  return at::embedding(tensors.parameters.at(0), indices);
}

at::Tensor batch_norm(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<BatchNormArguments>(layer.arguments);
  const bool has_buffers = !tensors.buffers.empty();
  const bool of_batch = tensors.training || !arguments.track_running_stats;
  if (of_batch && tensors.input.numel() <= arguments.num_features) {
    throw ArithmeticError("batch norm in training needs more than one value per channel",
                          "use a batch size of at least 2, or drop_last");
  }
  // Copies: autograd keeps what batch_norm was given, and must not see it change.
  const auto running = [&](size_t index) {
    return has_buffers ? tensors.buffers[index].to(tensors.input.scalar_type(), false, true)
                       : at::Tensor();
  };
  const at::Tensor mean = running(0);
  const at::Tensor variance = running(1);
  const at::Tensor output =
      at::batch_norm(tensors.input, parameter_at(tensors, 0), parameter_at(tensors, 1), mean,
                     variance, of_batch, arguments.momentum, arguments.eps, false);
  if (has_buffers && tensors.training) {
    tensors.buffers[0].copy_(mean);
    tensors.buffers[1].copy_(variance);
    tensors.buffers[2].add_(1);
  }
  return output;
}

at::Tensor dropped(const at::Tensor& input, double p, uint64_t key) {
  if (p >= 1) {
    return input * 0;
  }
  // Drawn on the CPU, so that every device drops the same.
  const at::Generator generator = at::detail::createCPUGenerator(key);
  const at::Tensor kept =
      at::empty_like(input, at::TensorOptions(at::kCPU)).bernoulli_(1 - p, generator);
  return input * kept.to(input.device()) / (1 - p);
}

/// Drops whole samples, or all of them, as torchvision.ops.stochastic_depth.
at::Tensor thinned(const Layer& layer, const LayerTensors& tensors) {
  const auto& depth = std::get<StochasticDepthArguments>(layer.arguments);
  if (!tensors.training || depth.p == 0) {
    return tensors.input.alias();
  }
  std::vector<int64_t> sizes(static_cast<size_t>(tensors.input.dim()), 1);
  sizes[0] = depth.of_batch ? 1 : tensors.input.size(0);
  const at::Generator generator = at::detail::createCPUGenerator(tensors.dropout_key);
  at::Tensor kept = at::empty(sizes, tensors.input.options().device(at::kCPU).requires_grad(false))
                        .bernoulli_(1 - depth.p, generator);
  if (depth.p < 1) {
    kept = kept / (1 - depth.p);
  }
  return tensors.input * kept.to(tensors.input.device());
}

at::Tensor conv2d(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<Conv2dArguments>(layer.arguments);
  return at::conv2d(tensors.input, tensors.parameters.at(0), parameter_at(tensors, 1),
                    arguments.stride, arguments.padding, arguments.dilation, arguments.groups);
}

at::Tensor conv1d(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<Conv2dArguments>(layer.arguments);
  return at::conv1d(tensors.input, tensors.parameters.at(0), parameter_at(tensors, 1),
                    arguments.stride[1], arguments.padding[1], arguments.dilation[1],
                    arguments.groups);
}

at::Tensor conv_transpose2d(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<ConvTranspose2dArguments>(layer.arguments);
  const Conv2dArguments& mirrored = arguments.mirrored;
  return at::conv_transpose2d(tensors.input, tensors.parameters.at(0), parameter_at(tensors, 1),
                              mirrored.stride, mirrored.padding, arguments.output_padding,
                              mirrored.groups, mirrored.dilation);
}

/// Scaled dot-product attention of [batch, heads, positions, head width]. LibTorch's own draws its
/// dropout from the global generator, so with dropout the scores are formed here.
at::Tensor attended(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    bool causal, double p, uint64_t dropout_key) {
  if (p == 0) {
    return at::scaled_dot_product_attention(query, key, value, {}, 0, causal);
  }
  at::Tensor scores =
      at::matmul(query, key.transpose(-2, -1)) / std::sqrt(static_cast<double>(query.size(-1)));
  if (causal) {
    const at::Tensor later =
        at::ones({query.size(-2), key.size(-2)}, scores.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -INFINITY);
  }
  return at::matmul(dropped(at::softmax(scores, -1), p, dropout_key), value);
}

/// The weighted sum, [batch, positions, width], of query, key and value side by side.
at::Tensor attention_core(const Layer& layer, const LayerTensors& tensors,
                          const at::Tensor& projected) {
  const auto& arguments = std::get<AttentionArguments>(layer.arguments);
  const int64_t batch = projected.size(0);
  const int64_t positions = projected.size(1);
  const int64_t width = arguments.embed_dim;
  const at::Tensor parts =
      projected.view({batch, positions, 3, arguments.num_heads, width / arguments.num_heads})
          .permute({2, 0, 3, 1, 4});
  const bool is_causal = layer.kind == LayerKind::causal_self_attention || arguments.causal;
  const at::Tensor sum = attended(parts[0], parts[1], parts[2], is_causal,
                                  tensors.training ? arguments.dropout : 0, tensors.dropout_key);
  return sum.transpose(1, 2).reshape({batch, positions, width});
}

at::Tensor attention(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<AttentionArguments>(layer.arguments);
  const size_t out = arguments.bias ? 2 : 1;
  const at::Tensor projected = at::linear(tensors.input, tensors.parameters.at(0),
                                          arguments.bias ? tensors.parameters.at(1) : at::Tensor());
  return at::linear(attention_core(layer, tensors, projected), tensors.parameters.at(out),
                    parameter_at(tensors, out + 1));
}

at::Tensor pooled(const Layer& layer, const at::Tensor& input) {
  if (layer.kind == LayerKind::adaptive_avg_pool2d) {
    return at::adaptive_avg_pool2d(input,
                                   std::get<AdaptivePool2dArguments>(layer.arguments).output_size);
  }
  const auto& arguments = std::get<Pool2dArguments>(layer.arguments);
  return layer.kind == LayerKind::max_pool2d
             ? at::max_pool2d(input, arguments.kernel_size, arguments.stride, arguments.padding)
             : at::avg_pool2d(input, arguments.kernel_size, arguments.stride, arguments.padding);
}

at::Tensor layer_norm(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<LayerNormArguments>(layer.arguments);
  return at::layer_norm(tensors.input, arguments.normalized_shape, parameter_at(tensors, 0),
                        parameter_at(tensors, 1), arguments.eps);
}

at::Tensor rms_norm(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<RmsNormArguments>(layer.arguments);
  const at::Tensor weight = parameter_at(tensors, 0);
  return at::rms_norm(tensors.input, arguments.normalized_shape,
                      weight.defined() ? std::optional(weight) : std::nullopt, arguments.eps);
}

at::Tensor group_norm(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<GroupNormArguments>(layer.arguments);
  return at::group_norm(tensors.input, arguments.num_groups, parameter_at(tensors, 0),
                        parameter_at(tensors, 1), arguments.eps, false);
}

/// The gradient of a share is that of the whole bias.
at::Tensor biased(const Layer& layer, const at::Tensor& input, const at::Tensor& bias) {
  const int32_t shares = std::get<BiasArguments>(layer.arguments).shares;
  return shares == 1 ? input + bias : input + (bias.detach().div(shares) + (bias - bias.detach()));
}

at::Tensor computed(const Layer& layer, const LayerTensors& tensors) {
  const at::Tensor& input = tensors.input;
  switch (layer.kind) {
    case LayerKind::linear:
      return at::linear(input, tensors.parameters.at(0), parameter_at(tensors, 1));
    case LayerKind::bias: return biased(layer, input, tensors.parameters.at(0));
    case LayerKind::relu: return at::relu(input);
    case LayerKind::leaky_relu:
      return at::leaky_relu(input, std::get<LeakyReluArguments>(layer.arguments).negative_slope);
    case LayerKind::relu6: return at::relu6(input);
    case LayerKind::silu: return at::silu(input);
    case LayerKind::hardswish: return at::hardswish(input);
    case LayerKind::sigmoid: return at::sigmoid(input);
    case LayerKind::hardsigmoid: return at::hardsigmoid(input);
    case LayerKind::tanh: return at::tanh(input);
    case LayerKind::softmax:  // behind the batch
      return at::softmax(input, std::get<SoftmaxArguments>(layer.arguments).dimension + 1);
    case LayerKind::rms_norm: return rms_norm(layer, tensors);
    case LayerKind::group_norm: return group_norm(layer, tensors);
    case LayerKind::conv1d: return conv1d(layer, tensors);
    case LayerKind::conv_transpose2d: return conv_transpose2d(layer, tensors);
    case LayerKind::gelu:
      return at::gelu(input, std::get<GeluArguments>(layer.arguments).tanh ? "tanh" : "none");
    case LayerKind::embedding: return embedding(layer, tensors);
    case LayerKind::positional_embedding:
      return input + tensors.parameters.at(0).narrow(0, 0, input.size(1));
    case LayerKind::batch_norm: return batch_norm(layer, tensors);
    case LayerKind::layer_norm: return layer_norm(layer, tensors);
    case LayerKind::conv2d: return conv2d(layer, tensors);
    case LayerKind::max_pool2d:
    case LayerKind::avg_pool2d:
    case LayerKind::adaptive_avg_pool2d: return pooled(layer, input);
    case LayerKind::dropout: {
      const double p = std::get<DropoutArguments>(layer.arguments).p;
      return tensors.training && p > 0 ? dropped(input, p, tensors.dropout_key) : input.alias();
    }
    case LayerKind::stochastic_depth: return thinned(layer, tensors);
    case LayerKind::attention_core: return attention_core(layer, tensors, input);
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention: return attention(layer, tensors);
    default: break;
  }
  if (std::optional<at::Tensor> output = decoder_output(layer, tensors)) {
    return *std::move(output);
  }
  if (std::optional<at::Tensor> output = window_output(layer, tensors)) {
    return *std::move(output);
  }
  if (std::optional<at::Tensor> output = aside_output(layer, tensors)) {
    return *std::move(output);
  }
  ensure(false, "a layer that only passes on, a price or a loss has no kernel of its own");
  return {};
}

}  // namespace

bool passes_on(LayerKind kind) {
  switch (kind) {
    case LayerKind::identity:
    case LayerKind::flatten:
    case LayerKind::residual_begin:
    case LayerKind::residual_add:
    case LayerKind::residual_concatenate:
    case LayerKind::residual_multiply:
    case LayerKind::aside_end:
    case LayerKind::buffer: return true;
    default: return false;
  }
}

at::Tensor layer_output(const Layer& layer, const LayerTensors& tensors,
                        at::ScalarType output_type) {
  const at::ScalarType type = computing_type(layer, tensors, output_type);
  LayerTensors converted = tensors;
  if (layer.kind != LayerKind::embedding) {
    converted.input = tensors.input.to(type);
  }
  for (at::Tensor& parameter : converted.parameters) {
    parameter = parameter.to(type);
  }
  if (converted.aside.defined()) {
    converted.aside = tensors.aside.to(type);
  }
  return computed(layer, converted).to(output_type);
}

}  // namespace lockstep::backend
