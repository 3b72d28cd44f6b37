#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "backend/libtorch/layer_output.hpp"

namespace lockstep::backend {

/// Scale, Positions, RelativePositionBias, BiasedAttention and CrossAttention; nothing for other
/// layers.
std::optional<at::Tensor> aside_output(const Layer& layer, const LayerTensors& tensors);

}  // namespace lockstep::backend
