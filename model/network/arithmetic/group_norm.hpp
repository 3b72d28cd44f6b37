#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.GroupNorm and RMSNorm.

/// Input [samples, channels, positions]; each sample's channels are normalised in groups.
struct GroupNormShape {
  int64_t samples = 1;
  int64_t groups = 1;
  int64_t channels = 1;
  int64_t positions = 1;
  double eps = 1e-5;
};

/// (x - mean) / sqrt(biased variance + eps) over each group, times the channel's weight, plus its
/// bias; both may be null.
void group_norm_forward(const Values& input, const Values* weight, const Values* bias,
                        const GroupNormShape& shape, Values& output);
/// Overwrites.
void group_norm_input_gradient(const Values& input, const Values& output_gradient,
                               const Values* weight, const GroupNormShape& shape,
                               Values& input_gradient);
/// Adds.
void group_norm_weight_gradients(const Values& input, const Values& output_gradient,
                                 const GroupNormShape& shape, Values& weight_gradient,
                                 Values& bias_gradient);

struct RmsNormShape {
  int64_t rows = 1;
  int64_t width = 1;
  double eps = 1e-5;
};

/// x / sqrt(mean(x^2) + eps) over each row, times the weight, which may be null (Zhang and Sennrich
/// 2019).
void rms_norm_forward(const Values& input, const Values* weight, const RmsNormShape& shape,
                      Values& output);
/// Overwrites.
void rms_norm_input_gradient(const Values& input, const Values& output_gradient,
                             const Values* weight, const RmsNormShape& shape,
                             Values& input_gradient);
/// Adds.
void rms_norm_weight_gradient(const Values& input, const Values& output_gradient,
                              const RmsNormShape& shape, Values& weight_gradient);

}  // namespace lockstep
