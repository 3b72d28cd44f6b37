#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// When the plain mean of a metric over parts of the samples is the metric of all of them.
enum class Averaging : uint8_t {
  equal_counts,               ///< a mean over samples: weighted by their number it is exact
  equal_predicted_positives,  ///< precision
  equal_positives,            ///< recall
  equal_negatives,            ///< specificity
  equal_predicted_negatives,  ///< negative predictive value
  equal_targets,              ///< weighted by the sum of |target|: a percentage of all targets
  equal_queries,              ///< retrieval: as many queries in each part, and none in two parts
  never_by_mean,              ///< a root or exponential of a mean: not even with equal counts
  never                       ///< F-beta, macro averages, areas, curves, kappas, correlations
};

/// What `docs/metrics.md` says about a class of TorchMetrics, or a function of a mean (exp, log):
/// `is_micro` of a multiclass or multilabel one. Nothing for classes whose values are no scores
/// (counts, matrices, sums).
std::optional<Averaging> averaging_of(std::string_view class_name, bool is_micro);

/// "F1 is never the mean of its parts", for a sentence.
std::string text_of(Averaging averaging, std::string_view metric);

}  // namespace lockstep
