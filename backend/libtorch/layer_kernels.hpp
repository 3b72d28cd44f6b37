#pragma once

#include <atomic>
#include <cstdint>

#include "backend/libtorch/layer_graph.hpp"
#include "backend/libtorch/tensor_operands.hpp"
#include "model/core/op.hpp"
#include "model/network/network.hpp"

namespace lockstep::backend {

/// State that the layers of one rank share.
struct LayerState {
  uint64_t dropout_seed = 0;
  KeptGraphs graphs{};
  std::atomic<int64_t> forwards_again = 0;  ///< backwards that found no graph that fits
};

/// layer_forward and layer_backward of model/core/kernel.hpp, of every kind of layer.
void execute_layer_forward(const Op& op, TensorOperands& operands, const Network& network,
                           LayerState& state);
void execute_layer_backward(const Op& op, TensorOperands& operands, const Network& network,
                            LayerState& state);

/// loss_forward and loss_backward, in fp32 (fp64 where an operand is). A target that is no class is
/// an ArithmeticError.
void execute_loss(const Op& op, TensorOperands& operands, const Network& network);
/// Of a loss that compares samples: one of its steps (model/network/contrastive_part.hpp).
void execute_comparison(const Op& op, const Layer& loss, const std::vector<at::Tensor>& reads,
                        TensorOperands& operands);

}  // namespace lockstep::backend
