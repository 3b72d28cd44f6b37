#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rehearsal/accuracy/predict_rows.hpp"

namespace lockstep::cli {

/// Errors of some predictions, as fractions of the measurement.
struct ErrorSummary {
  std::string name{};  ///< of the group; empty: all
  size_t rows = 0;
  double ratio = 1;  ///< geometric mean of predicted / measured
  double mean = 0;   ///< of the absolute errors, as the following
  double median = 0;
  double ninetieth = 0;  ///< 90th percentile, nearest rank
  double worst = 0;
  std::string worst_row{};
  double low = 1;  ///< 5 and 95 % of measured / predicted times: the range of a prediction
  double high = 1;
};
/// Of rows that have a prediction; `rows` is 0 where none has.
ErrorSummary summarize(const std::string& name, const std::vector<const PredictedRow*>& rows);

/// By the groups that `name_of` gives, in the order of their names.
std::vector<ErrorSummary> summaries_by(
    const std::vector<PredictedRow>& rows,
    const std::function<std::string(const PredictedRow&)>& name_of);

/// Rows without a prediction by the reason, most first.
struct MissingRows {
  std::string why{};
  size_t rows = 0;
  size_t data_parallel = 0;  ///< of these, on one GPU, under dp or ddp
};
std::vector<MissingRows> missing_rows(const std::vector<PredictedRow>& rows);

/// How far the efficiency of scaling is off: of pairs of rows that differ in the number of GPUs
/// alone, the throughput per GPU of the larger divided by that of the smaller.
struct ScalingPair {
  std::string id{};
  bool is_in_node = true;
  double measured = 1;
  double predicted = 1;
};
std::vector<ScalingPair> scaling_pairs(const std::vector<ThroughputRow>& rows,
                                       const std::vector<PredictedRow>& predicted);

}  // namespace lockstep::cli
