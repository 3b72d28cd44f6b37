#pragma once

#include <vector>

#include "model/core/dtype.hpp"
#include "model/network/network.hpp"

namespace lockstep {

/// The types that a training computes in. They differ under mixed precision (torch.autocast).
struct ComputingTypes {
  DType parameters = DType::fp32;
  DType activations = DType::fp32;  ///< of matrix products and convolutions
  /// torch.autocast of CUDA has layer norm, group norm and softmax in its list of fp32 operations,
  /// that of the CPU has not.
  bool layer_norm_is_fp32 = true;
  bool is_mixed() const { return parameters != activations; }
  bool operator==(const ComputingTypes&) const = default;
};

/// Linear, convolutions and attention, which autocast runs in the narrow type.
bool is_product(LayerKind kind);

/// The type of a layer's output. `branch`: of what a residual_add adds to its input. Under mixed
/// precision as torch.autocast gives it: products narrow; what has a wide parameter and is in no
/// list (bias, embeddings, a sum of two branches) in the wider type of its operands; all else
/// (ReLU, GELU, batch norm, pooling, dropout) in the type of its input.
DType output_type(const Layer& layer, DType input, DType branch, const ComputingTypes& types);

/// The type of what each layer of the network gets as its input, and the loss behind them.
std::vector<DType> input_types(const Network& network, const ComputingTypes& types);
DType input_type_of(const Network& network, size_t layer, const ComputingTypes& types);

}  // namespace lockstep
