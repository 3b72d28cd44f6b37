#pragma once

#include <string>
#include <vector>

#include "rehearsal/accuracy/accuracy_errors.hpp"

namespace lockstep::cli {

/// What `accuracy` shows: rows as published, each beside its prediction.
struct AccuracyView {
  std::vector<ThroughputRow> measured;
  std::vector<PredictedRow> rows;  ///< by place in `measured`
};

/// A kind of group: what errors are listed by.
struct AccuracyGrouping {
  std::string title;
  std::string (*name_of)(const PredictedRow& row);
};
std::vector<AccuracyGrouping> accuracy_groupings();

/// Of all rows that have a prediction.
ErrorSummary summary_of_all(const AccuracyView& view);
/// How far scaling efficiency is off on average, in points, and over how many pairs.
struct ScalingSummary {
  size_t pairs = 0;
  double points = 0;
};
ScalingSummary scaling_summary(const AccuracyView& view, bool in_node);
/// Rows on one GPU, under dp or ddp, and how many of these have a prediction.
struct DataParallelCoverage {
  size_t rows = 0;
  size_t predicted = 0;
};
DataParallelCoverage data_parallel_coverage(const AccuracyView& view);

std::string accuracy_text(const AccuracyView& view);
std::string accuracy_json(const AccuracyView& view);
std::string accuracy_csv(const AccuracyView& view);
/// Predicted over measured throughput per GPU, an SVG picture.
std::string accuracy_plot(const AccuracyView& view);
/// The page docs/accuracy.md.
std::string accuracy_page(const AccuracyView& view);

}  // namespace lockstep::cli
