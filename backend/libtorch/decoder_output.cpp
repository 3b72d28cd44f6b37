#include "backend/libtorch/decoder_output.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "backend/libtorch/mixture_output.hpp"

namespace lockstep::backend {

namespace {

/// One of several products of a layer, whose weights and biases take turns.
/// `weight`: the place of the weight among the parameters; its bias, if there is one, is behind it.
at::Tensor product(const at::Tensor& input, const LayerTensors& tensors, size_t weight, bool bias) {
  return at::linear(input, tensors.parameters.at(weight),
                    bias ? tensors.parameters.at(weight + 1) : at::Tensor());
}

/// Numbers i and i + width / 2 of each head are turned by position * theta^(-2 i / width), as
/// Llama's rotate_half does. `heads`: [batch, heads, positions, width].
at::Tensor rotated(const at::Tensor& heads, double theta) {
  const int64_t half = heads.size(-1) / 2;
  const auto fp64 = heads.options().dtype(at::kDouble).requires_grad(false);
  const at::Tensor exponents =
      at::arange(half, fp64) * (-2.0 / static_cast<double>(heads.size(-1)));
  const at::Tensor angles =
      at::outer(at::arange(heads.size(-2), fp64), (exponents * std::log(theta)).exp());
  const at::Tensor cosines = angles.cos().to(heads.scalar_type());
  const at::Tensor sines = angles.sin().to(heads.scalar_type());
  const at::Tensor first = heads.narrow(-1, 0, half);
  const at::Tensor second = heads.narrow(-1, half, half);
  return at::cat({first * cosines - second * sines, second * cosines + first * sines}, -1);
}

/// True where a position attends: to itself and the `window` - 1 before it.
at::Tensor window_mask(const at::Tensor& like, int64_t positions, int64_t window) {
  const at::Tensor all = at::ones({positions, positions}, like.options().dtype(at::kBool));
  return all.tril().logical_and(all.triu(1 - window));
}

at::Tensor grouped_attention(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<GroupedQueryArguments>(layer.arguments);
  const int64_t batch = tensors.input.size(0);
  const int64_t positions = tensors.input.size(1);
  const size_t apart = arguments.qkv_bias ? 2 : 1;
  const auto heads_of = [&](size_t which, int64_t heads) {
    return product(tensors.input, tensors, which * apart, arguments.qkv_bias)
        .view({batch, positions, heads, arguments.head_dim})
        .transpose(1, 2);
  };
  // The norms of query and key are the last two tensors.
  const auto normalised = [&](const at::Tensor& heads, size_t from_end) {
    return arguments.qk_norm_eps
               ? at::rms_norm(heads, {arguments.head_dim},
                              tensors.parameters.at(tensors.parameters.size() - from_end),
                              arguments.qk_norm_eps)
               : heads;
  };
  const at::Tensor query =
      rotated(normalised(heads_of(0, arguments.num_heads), 2), arguments.rope_theta);
  const at::Tensor key =
      rotated(normalised(heads_of(1, arguments.num_kv_heads), 1), arguments.rope_theta);
  const at::Tensor value = heads_of(2, arguments.num_kv_heads);
  const bool is_grouped = arguments.num_kv_heads != arguments.num_heads;
  const int64_t window = arguments.sliding_window;
  const bool sees_all = window == 0 || window >= positions;
  const at::Tensor sum = sees_all ? at::scaled_dot_product_attention(query, key, value, {}, 0, true,
                                                                     std::nullopt, is_grouped)
                                  : at::scaled_dot_product_attention(
                                        query, key, value, window_mask(query, positions, window), 0,
                                        false, std::nullopt, is_grouped);
  return product(sum.transpose(1, 2).reshape({batch, positions, arguments.query_width()}), tensors,
                 3 * apart, arguments.bias);
}

at::Tensor swiglu(const Layer& layer, const LayerTensors& tensors) {
  const auto& gated = std::get<SwigluArguments>(layer.arguments);
  const bool bias = gated.bias;
  const size_t apart = bias ? 2 : 1;
  const at::Tensor gate = product(tensors.input, tensors, 0, bias);
  const at::Tensor opened = gated.gelu ? at::gelu(gate, "tanh") : at::silu(gate);
  return product(opened * product(tensors.input, tensors, apart, bias), tensors, 2 * apart, bias);
}

/// Cell by cell: on CPUs at::lstm holds several times the memory that autograd needs of it.
at::Tensor lstm(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<LstmArguments>(layer.arguments);
  const size_t tensors_of_level = arguments.bias ? 4 : 2;
  at::Tensor input = tensors.input;
  for (int64_t level = 0; level < arguments.num_layers; ++level) {
    const auto parameter = [&](size_t which) {
      const size_t index = static_cast<size_t>(level) * tensors_of_level + which;
      return which < tensors_of_level ? tensors.parameters.at(index) : at::Tensor();
    };
    at::Tensor state =
        at::zeros({input.size(0), arguments.hidden_size}, input.options().requires_grad(false));
    at::Tensor cell = state;
    std::vector<at::Tensor> outputs;
    for (int64_t position = 0; position < input.size(1); ++position) {
      std::tie(state, cell) = at::lstm_cell(input.select(1, position), {state, cell}, parameter(0),
                                            parameter(1), parameter(2), parameter(3));
      outputs.push_back(state);
    }
    input = at::stack(outputs, 1);
  }
  return input;
}

at::Tensor patch_sequence(const Layer& layer, const LayerTensors& tensors) {
  const at::Tensor positions = tensors.input.flatten(2).transpose(1, 2);
  if (!std::get<PatchSequenceArguments>(layer.arguments).class_token) {
    return positions.contiguous();
  }
  const at::Tensor token =
      tensors.parameters.at(0).expand({positions.size(0), 1, positions.size(2)});
  return at::cat({token, positions}, 1);
}

}  // namespace

std::optional<at::Tensor> decoder_output(const Layer& layer, const LayerTensors& tensors) {
  switch (layer.kind) {
    case LayerKind::grouped_query_attention: return grouped_attention(layer, tensors);
    case LayerKind::swiglu: return swiglu(layer, tensors);
    case LayerKind::mixture_of_experts: return mixture_output(layer, tensors);
    case LayerKind::lstm: return lstm(layer, tensors);
    case LayerKind::upsample:
      return at::upsample_nearest2d(tensors.input, {layer.output[1], layer.output[2]});
    case LayerKind::patch_sequence: return patch_sequence(layer, tensors);
    case LayerKind::first_position: return tensors.input.select(1, 0).contiguous();
    default: return std::nullopt;
  }
}

}  // namespace lockstep::backend
