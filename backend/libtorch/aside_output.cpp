#include "backend/libtorch/aside_output.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "model/network/relative_buckets.hpp"

namespace lockstep::backend {

namespace {

at::Tensor relative_bias(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<RelativePositionBiasArguments>(layer.arguments);
  const int64_t positions = layer.input[0];
  std::vector<int64_t> buckets;
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t other = 0; other < positions; ++other) {
      buckets.push_back(relative_bucket(arguments, position, other));
    }
  }
  const at::Tensor& table = tensors.parameters.at(0);
  return table.index_select(0, at::tensor(buckets, at::kLong).to(table.device()))
      .view({positions, positions, arguments.num_heads})
      .permute({2, 0, 1})
      .unsqueeze(0)
      .expand({tensors.input.size(0), arguments.num_heads, positions, positions})
      .contiguous();
}

at::Tensor attention_beside(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<AsideAttentionArguments>(layer.arguments);
  const bool is_cross = layer.kind == LayerKind::cross_attention;
  const size_t apart = arguments.bias ? 2 : 1;
  const auto product = [&](const at::Tensor& input, size_t which) {
    return at::linear(input, tensors.parameters.at(which * apart),
                      arguments.bias ? tensors.parameters.at(which * apart + 1) : at::Tensor());
  };
  const auto heads = [&](const at::Tensor& input, size_t which) {
    return product(input, which)
        .view({input.size(0), input.size(1), arguments.num_heads, arguments.head_dim})
        .transpose(1, 2);
  };
  const at::Tensor& source = is_cross ? tensors.aside : tensors.input;
  const double scale =
      arguments.scaled ? 1 / std::sqrt(static_cast<double>(arguments.head_dim)) : 1;
  at::Tensor scores =
      at::matmul(heads(tensors.input, 0), heads(source, 1).transpose(-2, -1)) * scale;
  if (!is_cross) {
    scores = scores + tensors.aside;
  }
  if (arguments.causal) {
    const at::Tensor later =
        at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -INFINITY);
  }
  const at::Tensor sum = at::matmul(at::softmax(scores, -1), heads(source, 2));
  return product(sum.transpose(1, 2).reshape(
                     {tensors.input.size(0), tensors.input.size(1), arguments.width()}),
                 3);
}

}  // namespace

std::optional<at::Tensor> aside_output(const Layer& layer, const LayerTensors& tensors) {
  switch (layer.kind) {
    case LayerKind::scale: return tensors.input * std::get<ScaleArguments>(layer.arguments).factor;
    case LayerKind::positions: {
      const auto& positions = std::get<PositionsArguments>(layer.arguments);
      return tensors.input.narrow(1, positions.first, positions.count).contiguous();
    }
    case LayerKind::relative_position_bias: return relative_bias(layer, tensors);
    case LayerKind::biased_attention:
    case LayerKind::cross_attention: return attention_beside(layer, tensors);
    default: return std::nullopt;
  }
}

}  // namespace lockstep::backend
