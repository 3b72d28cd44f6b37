#pragma once

#include <cstdint>

#include "model/core/update_sensitivity.hpp"
#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.optim.SGD, Adam and AdamW for one tensor: PyTorch's documented
// update rules. Computed in fp32 (fp64 where an operand is), each stored tensor rounded once, as a
// fused implementation does. Integer-valued gradients with a power-of-two lr stay exact under SGD.

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

/// `momentum_buffer` is null where momentum is 0. `step` counts from 1: at the first the buffer
/// becomes the gradient, undamped.
void sgd_step(const SgdOptions& options, int64_t step, const Values& gradient,
              Values* momentum_buffer, Values& parameter);

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  /// AdamW (Loshchilov and Hutter 2019): the decay shrinks the parameter itself. Its default in
  /// torch.optim.AdamW is 0.01.
  bool decoupled_weight_decay = false;
  bool maximize = false;
};

/// Kingma and Ba 2015 with bias correction; `step` counts from 1. `largest_moment` is the largest
/// second moment so far, by which AMSGrad (Reddi et al. 2018) divides; null without it.
void adam_step(const AdamOptions& options, int64_t step, const Values& gradient,
               Values& first_moment, Values& second_moment, Values& parameter,
               Values* largest_moment = nullptr);

/// QAdamOptimizer of bagua 0.9.2 (algorithms/q_adam.py). Its weight decay changes nothing.
struct QAdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool updates_moments = true;  ///< false: they stay as they are, and the gradient is not looked at
};
void qadam_step(const QAdamOptions& options, int64_t step, const Values& gradient,
                Values& first_moment, Values& second_moment, Values& parameter);

/// The most that |r| is at a step, r = m / sqrt(v) of the corrected moments: by the inequality of
/// Cauchy and Schwarz (1 - beta1) sqrt(sum over j < step of (beta1^2 / beta2)^j / (1 - beta2)), and
/// the corrections. 1 at the first step; infinite where beta2 forgets what beta1 remembers.
double largest_adam_ratio(const AdamOptions& options, int64_t step);

/// Adds what the step that was just taken does with an error of its gradients. Where those of all
/// steps so far err by at most d, so does m, which is an average of them, and so does sqrt(v), a
/// norm of them (triangle inequality). Hence, with r = m / (sqrt(v) + eps) and c the largest ratio,
///   |r' - r| <= d (1 + |r'|) / (sqrt(v) + eps) <= d (1 + c) / (sqrt(v) + eps).
/// `largest_gradient`: the largest absolute element of gradient and weight decay together;
/// `second_moment`: after the step.
void add_adam_sensitivity(const AdamOptions& options, int64_t step, double largest_gradient,
                          const Values& second_moment, UpdateSensitivity& sensitivity);

}  // namespace lockstep
