#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "backend/libtorch/layer_kernels.hpp"
#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/loss.hpp"

namespace lockstep::backend {

namespace {

void refuse_strange_targets(const at::Tensor& targets, int64_t classes) {
  const at::Tensor strange =
      targets.ne(ignored_target).logical_and(targets.lt(0).logical_or(targets.ge(classes)));
  if (strange.any().item<bool>()) {
    const int64_t row = strange.to(at::kByte).argmax().item<int64_t>();
    throw ArithmeticError(
        fmt::format("target {} of row {} is none of {} classes", targets[row].item<int64_t>(), row,
                    classes),
        fmt::format("keep targets in 0 .. {}, or {} to ignore a row", classes - 1, ignored_target));
  }
}

at::Tensor loss_of(const Layer& loss, const at::Tensor& predictions, const at::Tensor& goal) {
  const auto reduction =
      std::get<LossArguments>(loss.arguments).mean ? at::Reduction::Mean : at::Reduction::Sum;
  if (loss.kind == LayerKind::mse_loss) {
    return at::mse_loss(predictions, goal.to(predictions.scalar_type()), reduction);
  }
  const int64_t classes = loss.input.back();
  const at::Tensor rows = goal.to(at::kLong);
  refuse_strange_targets(rows, classes);
  return at::cross_entropy_loss(predictions.view({-1, classes}), rows, {}, reduction,
                                ignored_target);
}

}  // namespace

void execute_loss(const Op& op, TensorOperands& operands, const Network& network) {
  const OpLists& lists = op.list();
  const std::vector<at::Tensor> reads = load_all(lists.reads, operands);
  if (reads.empty() || lists.writes.empty()) {
    return;
  }
  const bool is_backward = op.kernel == Kernel::loss_backward;
  const Slice& to = lists.writes[0];
  const bool is_double = reads[0].scalar_type() == at::kDouble || to.dtype == DType::fp64;
  const at::AutoGradMode grad_mode(is_backward);
  const at::Tensor predictions = reads[0]
                                     .detach()
                                     .to(is_double ? at::kDouble : at::kFloat)
                                     .detach()
                                     .requires_grad_(is_backward);
  at::Tensor result = loss_of(network.loss_of(op.tag), predictions, reads[1]);
  if (is_backward) {
    const at::Tensor factor = at::full_like(result, lists.scalars[0]);
    result = torch::autograd::grad({result}, {predictions}, {factor}).front();
  }
  operands.store(to, result);
}

}  // namespace lockstep::backend
