#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/metric/metric.hpp"

namespace lockstep {

/// MeanSquaredError (`squared: false`: its root) and MeanAbsoluteError: the error summed in fp32,
/// samples counted (TorchMetrics regression/{mse,mae}.py).
enum class ErrorFormula : uint8_t { squared, root_of_squared, absolute };
std::unique_ptr<const Metric> make_mean_error(ErrorFormula formula, int64_t outputs);

/// PearsonCorrCoef: means, variances, covariance and number of samples of each rank, kept apart and
/// merged pairwise in rank order (regression/pearson.py; Chan, Golub, LeVeque 1979). Its child
/// ConcordanceCorrCoef computes a different number from the same states
/// (regression/concordance.py).
enum class CorrelationFormula : uint8_t { pearson, concordance };
std::unique_ptr<const Metric> make_correlation(CorrelationFormula formula, int64_t outputs);

/// Perplexity: exp of the mean of -log p of the targets; `preds` [batch, tokens, vocabulary] are
/// logits (functional/text/perplexity.py).
std::unique_ptr<const Metric> make_perplexity(std::optional<int64_t> ignore_index);

}  // namespace lockstep
