#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "backend/libtorch/layer_kernels.hpp"
#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/loss.hpp"
#include "model/network/loss_part.hpp"

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

void refuse_no_probability(const at::Tensor& predictions) {
  const at::Tensor strange = predictions.ge(0).logical_and(predictions.le(1)).logical_not();
  if (strange.any().item<bool>()) {
    const int64_t element = strange.flatten().to(at::kByte).argmax().item<int64_t>();
    throw ArithmeticError(
        fmt::format("BCELoss takes probabilities, but element {} of the output is {:g}", element,
                    predictions.flatten()[element].item<double>()),
        "end the network in a Sigmoid, or use BCEWithLogitsLoss");
  }
}

/// Element by element; `goal` has the type of the predictions.
at::Tensor pointwise_loss(const Layer& loss, const at::Tensor& predictions,
                          const at::Tensor& goal) {
  const auto& arguments = std::get<LossArguments>(loss.arguments);
  const auto reduction = arguments.mean ? at::Reduction::Mean : at::Reduction::Sum;
  switch (loss.kind) {
    case LayerKind::l1_loss: return at::l1_loss(predictions, goal, reduction);
    case LayerKind::smooth_l1_loss:
      return arguments.threshold == 0
                 ? at::l1_loss(predictions, goal, reduction)
                 : at::smooth_l1_loss(predictions, goal, reduction, arguments.threshold);
    case LayerKind::huber_loss:
      return at::huber_loss(predictions, goal, reduction, arguments.threshold);
    case LayerKind::bce_loss:
      refuse_no_probability(predictions);
      return at::binary_cross_entropy(predictions, goal, {}, reduction);
    case LayerKind::bce_with_logits_loss:
      return at::binary_cross_entropy_with_logits(predictions, goal, {}, {}, reduction);
    case LayerKind::kl_div_loss: {
      const at::Tensor sum = at::kl_div(predictions, goal, reduction, arguments.log_target);
      const auto samples = static_cast<double>(predictions.numel() / elements_of(loss.input));
      return arguments.batch_mean ? sum / samples : sum;
    }
    default: return at::mse_loss(predictions, goal, reduction);
  }
}

at::Tensor loss_of(const Layer& loss, const at::Tensor& predictions, const at::Tensor& goal) {
  const auto reduction =
      std::get<LossArguments>(loss.arguments).mean ? at::Reduction::Mean : at::Reduction::Sum;
  if (!has_class_targets(loss.kind)) {
    return pointwise_loss(loss, predictions,
                          goal.to(predictions.scalar_type()).view(predictions.sizes()));
  }
  const int64_t classes = loss.input.back();
  const at::Tensor rows = goal.to(at::kLong);
  refuse_strange_targets(rows, classes);
  if (loss.kind == LayerKind::nll_loss) {
    return at::nll_loss(predictions.view({-1, classes}), rows, {}, reduction, ignored_target);
  }
  return at::cross_entropy_loss(predictions.view({-1, classes}), rows, {}, reduction,
                                ignored_target);
}

/// The targets as columns of this rank's classes, and the rows whose target is one of them.
struct OwnTargets {
  at::Tensor columns;
  at::Tensor is_own;
};

OwnTargets own_targets(const at::Tensor& targets, int64_t classes, int64_t first) {
  const at::Tensor own = targets.to(at::kLong) - first;
  const at::Tensor is_own = own.ge(0).logical_and(own.lt(classes));
  return {own.masked_fill(is_own.logical_not(), 0), is_own};
}

at::Tensor gradient_of_part(const std::vector<at::Tensor>& reads, const at::Tensor& scores,
                            double factor, int64_t first, bool mean) {
  const int64_t classes = scores.size(1);
  const at::Tensor counts = reads[1].to(at::kLong).ne(ignored_target);
  const OwnTargets own = own_targets(reads[1], classes, first);
  at::Tensor gradient =
      at::exp(scores - reads[2].to(scores).unsqueeze(1)) / reads[3].to(scores).unsqueeze(1);
  gradient.scatter_add_(1, own.columns.unsqueeze(1), own.is_own.to(scores).neg().unsqueeze(1));
  const double rows = mean ? counts.sum().item<double>() : 1;
  return (gradient * counts.to(scores).unsqueeze(1) * (factor / rows)).flatten();
}

/// Cross entropy of which this rank has the scores of some classes (model/network/loss_part.hpp).
void execute_loss_part(const Op& op, const Layer& loss, const std::vector<at::Tensor>& reads,
                       TensorOperands& operands) {
  const OpLists& lists = op.list();
  const int64_t classes = loss.input.back();
  const auto& arguments = std::get<LossArguments>(loss.arguments);
  const auto first = static_cast<int64_t>(lists.scalars[1]);
  const auto part = static_cast<LossPart>(lists.scalars[0]);
  const bool is_backward = op.kernel == Kernel::loss_backward;
  if (!is_backward && part == LossPart::loss) {
    const at::Tensor counts = reads[2].to(at::kLong).ne(ignored_target);
    const at::Tensor losses = (at::log(reads[1]) - reads[0]) * counts.to(reads[1]);
    operands.store(lists.writes[0],
                   arguments.mean ? losses.sum() / counts.sum().to(losses) : losses.sum());
    return;
  }
  const at::ScalarType type = reads[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor scores = reads[0].to(type).view({-1, classes});
  if (is_backward) {
    operands.store(lists.writes[0],
                   gradient_of_part(reads, scores, lists.scalars[0], first, arguments.mean));
  } else if (part == LossPart::greatest) {
    operands.store(lists.writes[0], scores.amax(1));
  } else {
    refuse_strange_targets(reads[1].to(at::kLong), classes * arguments.parts);
    const OwnTargets own = own_targets(reads[1], classes, first);
    const at::Tensor shifted = scores - reads[2].to(scores).unsqueeze(1);
    const at::Tensor of_target = shifted.gather(1, own.columns.unsqueeze(1)).squeeze(1);
    operands.store(lists.writes[0], of_target.masked_fill(own.is_own.logical_not(), 0));
    operands.store(lists.writes[1], at::exp(shifted).sum(1));
  }
}

}  // namespace

void execute_loss(const Op& op, TensorOperands& operands, const Network& network) {
  const OpLists& lists = op.list();
  const std::vector<at::Tensor> reads = load_all(lists.reads, operands);
  if (reads.empty() || lists.writes.empty()) {
    return;
  }
  const Layer& own_loss = network.loss_of(op.tag);
  if (const auto* arguments = std::get_if<LossArguments>(&own_loss.arguments);
      arguments != nullptr && arguments->parts > 1) {
    execute_loss_part(op, own_loss, reads, operands);
    return;
  }
  if (compares_samples(own_loss.kind)) {
    execute_comparison(op, own_loss, reads, operands);
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
