#pragma once

#include <memory>

#include "model/metric/metric.hpp"

namespace lockstep {

/// What several outputs become.
enum class OutputAverage : uint8_t { raw_values, uniform, variance_weighted };

/// R2Score: sums of targets, of their squares and of squared errors, so large means cost fp32 its
/// digits (functional/regression/r2.py). `adjusted`: number of regressors, or 0. States begin as
/// single numbers and take the shape of the first batch.
std::unique_ptr<const Metric> make_r2_score(int64_t adjusted, OutputAverage average);

/// RelativeSquaredError: the same sums of a fixed number of outputs (regression/rse.py).
std::unique_ptr<const Metric> make_relative_squared_error(int64_t outputs, bool squared);

/// ExplainedVariance (functional/regression/explained_variance.py); states as of R2Score.
std::unique_ptr<const Metric> make_explained_variance(OutputAverage average);

/// NormalizedRootMeanSquaredError. States of the target are kept apart by rank and merged at
/// compute, which raises IndexError from three ranks on (regression/nrmse.py, _final_aggregation).
enum class ErrorScale : uint8_t { mean, range, deviation, norm };
std::unique_ptr<const Metric> make_normalized_error(ErrorScale scale, int64_t outputs);

}  // namespace lockstep
