#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of the losses that compare output and target element by element
// (torch.nn.L1Loss, SmoothL1Loss, HuberLoss, BCELoss, BCEWithLogitsLoss, KLDivLoss), and of
// NLLLoss.

enum class LossFunction : uint8_t {
  l1,               ///< |x - t|
  smooth_l1,        ///< (x - t)^2 / (2 beta) below beta, else |x - t| - beta / 2
  huber,            ///< (x - t)^2 / 2 up to delta, else delta (|x - t| - delta / 2)
  bce,              ///< -t log x - (1 - t) log(1 - x), each logarithm at least -100
  bce_with_logits,  ///< the same of sigmoid(x), stable
  kl_div,           ///< t (log t - x); 0 where t is 0
  kl_div_log,       ///< exp(t) (t - x)
};

struct PointwiseLoss {
  LossFunction function = LossFunction::l1;
  double threshold = 1;  ///< beta, delta
  double divisor = 1;    ///< of the sum: the number of elements for the mean, 1 for the sum
};

/// The sum over all elements, divided. `bce` throws ArithmeticError where x is not in 0 .. 1.
void pointwise_loss_forward(const Values& input, const Values& target, const PointwiseLoss& loss,
                            Values& result);
/// Its slopes, times `factor`. Overwrites.
void pointwise_loss_backward(const Values& input, const Values& target, const PointwiseLoss& loss,
                             double factor, Values& input_gradient);

/// scores [rows, classes] are logarithms of probabilities, targets int64 [rows]: the mean over the
/// rows that count, or the sum, of -scores[target]. Targets as in cross_entropy_forward.
void nll_forward(const Values& scores, const Values& targets, int64_t classes, bool mean,
                 Values& loss);
void nll_backward(const Values& scores, const Values& targets, int64_t classes, bool mean,
                  double factor, Values& score_gradient);

}  // namespace lockstep
