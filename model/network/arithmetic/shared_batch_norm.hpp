#pragma once

#include <cstdint>

#include "model/network/arithmetic/batch_norm.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.SyncBatchNorm (torch/nn/modules/_functions.py): a batch norm
// whose statistics are those of all ranks. `statistics` are [2 * channels + 1]: the mean of each
// channel, 1 / sqrt(biased variance + eps) of each, and the number of values behind them.

/// Of one rank's input.
void own_statistics(const Values& input, const BatchNormShape& shape, double eps,
                    Values& statistics);

/// Of all ranks: `gathered` has theirs one behind the other. Means and variances are merged one
/// rank after the other, each counted by its values (Chan, Golub and LeVeque 1979).
void merge_statistics(const Values& gathered, int64_t channels, double eps, Values& statistics);

/// The biased variance of each channel.
Values variance_of(const Values& statistics, double eps);
/// The mean of each channel.
Values mean_of(const Values& statistics);
int64_t count_of(const Values& statistics);

/// For each channel: sum of output_gradient, then of output_gradient * (input - mean).
void own_gradient_sums(const Values& input, const Values& output_gradient, const Values& statistics,
                       const BatchNormShape& shape, Values& sums);

/// input_gradient, of the sums of all ranks.
void shared_input_gradient(const Values& input, const Values& output_gradient,
                           const Values& statistics, const Values& sums, const Values* weight,
                           const BatchNormShape& shape, Values& input_gradient);

}  // namespace lockstep
