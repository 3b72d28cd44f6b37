#include "model/network/output_type.hpp"

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
         kind == LayerKind::residual_begin || kind == LayerKind::dropout;
}

}  // namespace

bool is_product(LayerKind kind) {
  return kind == LayerKind::linear || kind == LayerKind::conv1d || kind == LayerKind::conv2d ||
         kind == LayerKind::conv_transpose2d || kind == LayerKind::multihead_attention ||
         kind == LayerKind::causal_self_attention;
}

DType output_type(const Layer& layer, DType input, DType branch, const ComputingTypes& types) {
  if (hands_on(layer.kind)) {
    return input;
  }
  if (!types.is_mixed() || is_product(layer.kind) || layer.kind == LayerKind::cost) {
    return types.activations;
  }
  switch (layer.kind) {
    case LayerKind::embedding: return types.parameters;
    case LayerKind::bias:
    case LayerKind::positional_embedding: return wider(input, types.parameters);
    case LayerKind::residual_add: return wider(input, branch);
    case LayerKind::group_norm:
    case LayerKind::softmax:
    case LayerKind::layer_norm: return types.layer_norm_is_fp32 ? DType::fp32 : input;
    default: return input;
  }
}

}  // namespace lockstep
