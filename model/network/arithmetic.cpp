#include "model/network/arithmetic.hpp"

namespace lockstep {

bool has_reference_arithmetic(LayerKind kind) {
  switch (kind) {
    case LayerKind::linear:
    case LayerKind::bias:
    case LayerKind::relu:
    case LayerKind::embedding:
    case LayerKind::batch_norm:
    case LayerKind::flatten:
    case LayerKind::buffer:
    case LayerKind::residual_begin:
    case LayerKind::residual_shortcut:
    case LayerKind::residual_add:
    case LayerKind::cross_entropy_loss:
    case LayerKind::mse_loss: return true;
    default: return false;
  }
}

}  // namespace lockstep
