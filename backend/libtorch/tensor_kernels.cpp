#include "backend/libtorch/tensor_kernels.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>

#include "backend/libtorch/clipping_kernels.hpp"
#include "backend/libtorch/compression_kernels.hpp"
#include "backend/libtorch/elementwise_kernels.hpp"
#include "backend/libtorch/layer_output.hpp"
#include "backend/libtorch/low_rank_kernels.hpp"
#include "backend/libtorch/optimizer_kernels.hpp"
#include "model/core/ensure.hpp"
#include "model/network/arithmetic.hpp"

namespace lockstep::backend {

namespace {

std::string place(const Op& op, const Network* network) {
  const bool is_layer = op.kernel == Kernel::layer_forward || op.kernel == Kernel::layer_backward;
  return is_layer ? fmt::format("{} of `{}`", name_of(op.kernel),
                                network->layers.at(static_cast<size_t>(op.tag)).name)
                  : std::string(name_of(op.kernel));
}

void note_moves(const OpLists& lists, TensorOperands& operands) {
  for (size_t i = 0; i < std::min(lists.reads.size(), lists.writes.size()); ++i) {
    operands.moved(lists.reads[i], lists.writes[i]);
  }
}

}  // namespace

void TensorKernels::execute(const Op& op, TensorOperands& operands, const Network* network) {
  const at::NoGradGuard no_grad;
  try {
    run(op, operands, network);
  } catch (const c10::Error& error) {
    throw ArithmeticError(
        fmt::format("{}: LibTorch refuses it: {}", place(op, network),
                    error.what_without_backtrace()),
        "look at the arguments of the layer or optimizer, and at the sizes of its input");
  }
}

void TensorKernels::run(const Op& op, TensorOperands& operands, const Network* network) {
  switch (op.kernel) {
    case Kernel::timed:
    case Kernel::roofline: return;
    case Kernel::layer_forward:
    case Kernel::layer_backward:
    case Kernel::loss_forward:
    case Kernel::loss_backward:
      ensure(network != nullptr, "a layer kernel runs in a world that knows the network");
      run_layer(op, operands, *network);
      return;
    case Kernel::sgd_step:
    case Kernel::adam_step:
    case Kernel::qadam_step:
    case Kernel::optimizer_step:
      execute_optimizer(op, operands);
      operands.updated();
      return;
    case Kernel::copy:
    case Kernel::cast:
      execute_elementwise(op, operands);
      note_moves(op.list(), operands);
      return;
    case Kernel::fill:
    case Kernel::scale:
    case Kernel::swap_outer:
    case Kernel::add:
    case Kernel::add_scaled:
    case Kernel::average:
    case Kernel::adasum: execute_elementwise(op, operands); return;
    case Kernel::compress:
    case Kernel::decompress: execute_compression(op, operands); return;
    case Kernel::squared_norm:
    case Kernel::clip_by_norm:
    case Kernel::clip_by_value: execute_clipping(op, operands); return;
    case Kernel::unscale: execute_unscaling(op, operands); return;
    case Kernel::matrix_product:
    case Kernel::orthogonalize: execute_low_rank(op, operands); return;
  }
}

void TensorKernels::run_layer(const Op& op, TensorOperands& operands, const Network& network) {
  if (op.kernel == Kernel::layer_forward) {
    execute_layer_forward(op, operands, network, state_);
  } else if (op.kernel == Kernel::layer_backward) {
    execute_layer_backward(op, operands, network, state_);
  } else {
    execute_loss(op, operands, network);
  }
}

bool looks_at_values(const Op& op, const Network* network) {
  switch (op.kernel) {
    case Kernel::loss_forward:
    case Kernel::loss_backward: return true;
    case Kernel::layer_forward:
    case Kernel::layer_backward: {
      ensure(network != nullptr, "a layer kernel runs in a world that knows the network");
      const Layer& layer = network->layers.at(static_cast<size_t>(op.tag));
      return layer.kind == LayerKind::embedding || layer.kind == LayerKind::mixture_of_experts ||
             layer.context || draws(layer);
    }
    default: return false;
  }
}

}  // namespace lockstep::backend
