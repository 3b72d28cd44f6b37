#pragma once

#include "backend/libtorch/layer_kernels.hpp"
#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"
#include "model/network/network.hpp"

namespace lockstep::backend {

/// The kernels of one rank on tensors, wherever these are: the rules of kernels.hpp.
class TensorKernels {
 public:
  explicit TensorKernels(uint64_t dropout_seed) { state_.dropout_seed = dropout_seed; }

  /// Throws ArithmeticError. `network` is needed by layer kernels.
  void execute(const Op& op, TensorOperands& operands, const Network* network);
  /// A buffer is given back.
  void released(BufferId buffer) { state_.graphs.released(buffer); }
  int64_t forwards_again() const { return state_.forwards_again; }

 private:
  void run(const Op& op, TensorOperands& operands, const Network* network);
  void run_layer(const Op& op, TensorOperands& operands, const Network& network);

  LayerState state_;
};

/// The kernel looks at values on the host (indices, classes, the key of a dropout) and so waits for
/// all that comes before it on its device.
bool looks_at_values(const Op& op, const Network* network);

}  // namespace lockstep::backend
