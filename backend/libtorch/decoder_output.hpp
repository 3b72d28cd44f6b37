#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "backend/libtorch/layer_output.hpp"

namespace lockstep::backend {

/// Grouped attention, SwiGLU, mixtures of experts, LSTM and the layers that only place elements, as
/// `layer_output`; nothing for other kinds.
std::optional<at::Tensor> decoder_output(const Layer& layer, const LayerTensors& tensors);

}  // namespace lockstep::backend
