#pragma once

#include <memory>

#include "model/metric/metric.hpp"

namespace lockstep {

/// A sum over all elements in fp32, and what it is divided by: TorchMetrics regression/{log_mse,
/// mape, symmetric_mape, wmape, minkowski, tweedie_deviance}.py.
enum class ErrorSumFormula : uint8_t {
  squared_log,           ///< MeanSquaredLogError
  percentage,            ///< MeanAbsolutePercentageError
  symmetric_percentage,  ///< SymmetricMeanAbsolutePercentageError
  weighted_percentage,   ///< WeightedMeanAbsolutePercentageError: divided by the sum of |target|
  minkowski,             ///< MinkowskiDistance: a root of the sum, divided by nothing
  tweedie                ///< TweedieDevianceScore
};
/// `exponent`: `p` of minkowski, at least 1; `power` of tweedie, not between 0 and 1.
std::unique_ptr<const Metric> make_error_sum(ErrorSumFormula formula, float exponent = 0);

/// LogCoshError: one sum an output (regression/log_cosh.py).
std::unique_ptr<const Metric> make_log_cosh(int64_t outputs);

/// ContinuousRankedProbabilityScore: `preds` [samples, members] (regression/crps.py).
std::unique_ptr<const Metric> make_ranked_probability();

/// KLDivergence and JensenShannonDivergence of rows of probabilities, or of their logarithms:
/// `preds` is p and `target` q. `each`: a list of one measure a row, joined over the ranks.
enum class DivergenceFormula : uint8_t { kullback_leibler, jensen_shannon };
enum class DivergenceReduction : uint8_t { mean, sum, each };
std::unique_ptr<const Metric> make_divergence(DivergenceFormula formula, bool logarithms,
                                              DivergenceReduction reduction);

}  // namespace lockstep
