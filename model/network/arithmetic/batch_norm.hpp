#pragma once

#include <cstddef>
#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.BatchNorm1d / BatchNorm2d (Ioffe and Szegedy 2015). Layout
// [batch, channels, spatial], spatial 1 for flat features. A channel has batch * spatial values.
// Statistics are a mean and a biased variance for each channel; they are computed in fp32 (fp64
// where an operand is) in two passes over increasing indices. The steps are apart so that a batch
// norm synchronised over ranks can reduce in between. `weight` and `bias` may be null (affine off).

struct BatchNormShape {
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t spatial = 1;
  int64_t values_per_channel() const { return batch * spatial; }
  int64_t elements() const { return batch * channels * spatial; }

  /// Calls visit(element, channel) in memory order, so that every channel's sum has increasing
  /// indices.
  template <class Visit>
  void for_each_element(Visit visit) const {
    size_t element = 0;
    for (int64_t sample = 0; sample < batch; ++sample) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        for (int64_t place = 0; place < spatial; ++place) {
          visit(element++, static_cast<size_t>(channel));
        }
      }
    }
  }
};

/// Fewer than two values in a channel throw ArithmeticError, as torch does in training.
void batch_norm_statistics(const Values& input, const BatchNormShape& shape, Values& mean,
                           Values& variance);

/// running = (1 - momentum) running + momentum statistic, with the unbiased variance
/// variance * values / (values - 1); counts the batch (int64).
void batch_norm_update_running(const Values& mean, const Values& variance,
                               int64_t values_per_channel, double momentum, Values& running_mean,
                               Values& running_variance, Values& batches_tracked);

/// output = (input - mean) / sqrt(variance + eps) * weight + bias; in evaluation with the running
/// statistics.
void batch_norm_normalise(const Values& input, const Values& mean, const Values& variance,
                          const Values* weight, const Values* bias, const BatchNormShape& shape,
                          double eps, Values& output);

/// For each channel: sum of output_gradient, and of output_gradient * normalised input. These are
/// the gradients of bias and weight; overwrites.
void batch_norm_gradient_sums(const Values& input, const Values& output_gradient,
                              const Values& mean, const Values& variance,
                              const BatchNormShape& shape, double eps, Values& gradient_sum,
                              Values& product_sum);

/// Training: input_gradient = weight / deviation * (output_gradient - gradient_sum / values -
/// normalised input * product_sum / values), where `values` are those behind the sums.
void batch_norm_input_gradient(const Values& input, const Values& output_gradient,
                               const Values& mean, const Values& variance, const Values* weight,
                               const Values& gradient_sum, const Values& product_sum,
                               int64_t values_per_channel, const BatchNormShape& shape, double eps,
                               Values& input_gradient);

/// Evaluation, where the statistics are constants: output_gradient * weight / deviation.
void batch_norm_input_gradient_of_evaluation(const Values& output_gradient, const Values& variance,
                                             const Values* weight, const BatchNormShape& shape,
                                             double eps, Values& input_gradient);

}  // namespace lockstep
