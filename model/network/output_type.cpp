#include "model/network/output_type.hpp"

#include <utility>
#include <vector>

namespace lockstep {

namespace {

DType wider(DType a, DType b) {
  if (is_floating(a) != is_floating(b)) {
    return is_floating(a) ? a : b;
  }
  return size_of(a) >= size_of(b) ? a : b;
}

bool hands_on(LayerKind kind) {
  return kind == LayerKind::flatten || kind == LayerKind::buffer || kind == LayerKind::identity ||
         kind == LayerKind::residual_begin || kind == LayerKind::dropout ||
         kind == LayerKind::stochastic_depth || kind == LayerKind::first_position ||
         kind == LayerKind::permute || kind == LayerKind::positions || kind == LayerKind::scale ||
         kind == LayerKind::aside_end || kind == LayerKind::patch_merging ||
         kind == LayerKind::exchange;
}

}  // namespace

bool is_product(LayerKind kind) {
  return kind == LayerKind::linear || kind == LayerKind::conv1d || kind == LayerKind::conv2d ||
         kind == LayerKind::conv_transpose2d || kind == LayerKind::multihead_attention ||
         kind == LayerKind::causal_self_attention || kind == LayerKind::grouped_query_attention ||
         kind == LayerKind::window_attention || kind == LayerKind::biased_attention ||
         kind == LayerKind::cross_attention || kind == LayerKind::attention_core ||
         kind == LayerKind::attention_projections || kind == LayerKind::swiglu ||
         kind == LayerKind::mixture_of_experts || kind == LayerKind::lstm;
}

DType output_type(const Layer& layer, DType input, DType branch, const ComputingTypes& types) {
  if (hands_on(layer.kind)) {
    return input;
  }
  if (!types.is_mixed() || is_product(layer.kind) || layer.kind == LayerKind::cost) {
    return types.activations;
  }
  switch (layer.kind) {
    case LayerKind::relative_position_bias:
    case LayerKind::embedding: return types.parameters;
    case LayerKind::bias:
    case LayerKind::patch_sequence:
    case LayerKind::positional_embedding: return wider(input, types.parameters);
    case LayerKind::layer_scale: return wider(input, types.parameters);
    case LayerKind::residual_add:
    case LayerKind::residual_multiply:
    case LayerKind::residual_concatenate: return wider(input, branch);
    case LayerKind::group_norm:
    case LayerKind::softmax:
    case LayerKind::layer_norm: return types.layer_norm_is_fp32 ? DType::fp32 : input;
    default: return input;
  }
}

std::vector<DType> input_types(const Network& network, const ComputingTypes& types) {
  struct Branch {
    DType remembered;
    DType aside;
  };
  std::vector<Branch> open;
  std::vector<DType> found;
  DType current = is_floating(network.input_dtype) ? types.parameters : network.input_dtype;
  for (const Layer& each : network.layers) {
    found.push_back(current);
    if (each.kind == LayerKind::residual_begin) {
      open.push_back({current, current});
    } else if (each.kind == LayerKind::residual_shortcut) {
      open.back().aside = std::exchange(current, open.back().remembered);
    } else if (ends_residual(each.kind)) {
      current = output_type(each, current, open.back().aside, types);
      open.pop_back();
    } else {
      current = output_type(each, current, current, types);
    }
  }
  found.push_back(current);
  return found;
}

DType input_type_of(const Network& network, size_t layer, const ComputingTypes& types) {
  return input_types(network, types).at(layer);
}

}  // namespace lockstep
