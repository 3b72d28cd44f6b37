#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "backend/libtorch/layer_output.hpp"

namespace lockstep::backend {

/// LayerScale, Permute, PatchMerging and WindowAttention; nothing for other layers.
std::optional<at::Tensor> window_output(const Layer& layer, const LayerTensors& tensors);

}  // namespace lockstep::backend
