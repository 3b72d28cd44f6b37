#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.MSELoss and CrossEntropyLoss. `loss` has one element; `factor`
// is the gradient of what is differentiated with respect to the loss (1, or 1 over the number of
// accumulated batches, or a loss scale). Gradients overwrite.

enum class LossReduction : uint8_t { mean, sum };

/// mean or sum of (input - target)^2
void mse_forward(const Values& input, const Values& target, LossReduction reduction, Values& loss);
/// 2 (input - target) factor, divided by the number of elements for the mean.
void mse_backward(const Values& input, const Values& target, LossReduction reduction, double factor,
                  Values& input_gradient);

/// Rows with this target count neither in the loss nor in its mean, as torch's ignore_index.
inline constexpr int64_t ignored_target = -100;

/// scores [rows, classes], targets int64 [rows]. Mean over the rows that count, or sum, of
/// log(sum exp(scores)) - scores[target], shifted by the row's maximum. A target that is no class
/// throws ArithmeticError; the mean of no rows is NaN, as in torch.
void cross_entropy_forward(const Values& scores, const Values& targets, int64_t classes,
                           LossReduction reduction, Values& loss);
/// (softmax(scores) - one at the target) factor, over the number of rows that count for the mean.
void cross_entropy_backward(const Values& scores, const Values& targets, int64_t classes,
                            LossReduction reduction, double factor, Values& score_gradient);

}  // namespace lockstep
