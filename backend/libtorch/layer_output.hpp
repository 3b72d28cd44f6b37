#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/network/layer.hpp"

namespace lockstep::backend {

/// Inputs of a layer's forward. The batch is dimension 0 of the input; parameters and buffers
/// are in the layer's order, a tied weight first.
struct LayerTensors {
  at::Tensor input{};
  std::vector<at::Tensor> parameters{};
  std::vector<at::Tensor> buffers{};  ///< none: statistics are neither used nor updated
  at::Tensor aside{};                 ///< what the layer reads beside its input
  bool training = true;
  uint64_t dropout_key = 0;
  int64_t first_row = 0;  ///< of an embedding that is a part of the rows
  /// Mixed precision: what Linear, Conv2d and attention compute in, as under torch.autocast.
  /// Nothing: in the widest type, as everything else.
  std::optional<at::ScalarType> products_in{};
};

/// Flattening, residuals and `Buffer`, which hand on or add whole tensors and need no graph.
bool passes_on(LayerKind kind);

/// One layer as torch.nn.functional computes it, of every kind but those that `passes_on`, in the
/// widest floating type of input, parameters and `output_type`, but for `products_in`;
/// normalisation over the batch in fp32 at least, since its statistics are. Updates running
/// statistics in place. Throws ArithmeticError for an index beyond its table and for one value per
/// channel.
at::Tensor layer_output(const Layer& layer, const LayerTensors& tensors,
                        at::ScalarType output_type);

}  // namespace lockstep::backend
