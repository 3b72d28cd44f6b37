#pragma once

#include <memory>

#include "model/metric/labels.hpp"

namespace lockstep {

/// What is made of the counts of true and false positives and negatives.
enum class CountFormula : uint8_t {
  accuracy,
  precision,
  recall,
  specificity,
  negative_predictive_value,
  hamming_distance,
  f_beta,
  counts
};

struct CountOptions {
  CountFormula formula = CountFormula::accuracy;
  float beta = 1;  ///< of f_beta
  float zero_division = 0;
};

/// TorchMetrics' family of StatScores: four int64 states `tp fp tn fn` that are summed, one entry a
/// class unless the average is micro (functional/classification/stat_scores.py and its neighbours).
std::unique_ptr<const Metric> make_count_metric(const Classification& classification,
                                                const CountOptions& options);

}  // namespace lockstep
