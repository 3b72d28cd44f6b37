#include "model/strategy/local_model/gradient_order.hpp"

#include <algorithm>

namespace lockstep {

namespace {

bool follows_definition(LayerKind kind) {
  switch (kind) {
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::group_norm:
    case LayerKind::conv1d:
    case LayerKind::conv2d:
    case LayerKind::conv_transpose2d: return true;
    default: return false;
  }
}

}  // namespace

std::vector<size_t> in_order_of_gradients(const Replica& replica, size_t layer) {
  std::vector<size_t> parameters = replica.trainable_of(layer);
  if (!follows_definition(replica.network().layers[layer].kind)) {
    std::ranges::reverse(parameters);
  }
  return parameters;
}

}  // namespace lockstep
