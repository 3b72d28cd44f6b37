#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/render/accuracy/accuracy_view.hpp"

namespace lockstep::cli {

namespace {

std::string error_line(const ErrorSummary& summary) {
  return fmt::format("  {:<26} {:>5} {:>7.2f} {:>6.0f}% {:>6.0f}% {:>6.0f}% {:>6.0f}%  {}\n",
                     summary.name, summary.rows, summary.ratio, summary.mean * 100,
                     summary.median * 100, summary.ninetieth * 100, summary.worst * 100,
                     summary.worst_row);
}

}  // namespace

std::vector<AccuracyGrouping> accuracy_groupings() {
  return {{"source", [](const PredictedRow& row) { return row.group.source; }},
          {"software", [](const PredictedRow& row) { return row.group.software; }},
          {"GPU", [](const PredictedRow& row) { return row.group.gpu; }},
          {"family", [](const PredictedRow& row) { return row.group.family; }},
          {"strategy", [](const PredictedRow& row) { return row.group.strategy; }},
          {"precision", [](const PredictedRow& row) { return row.group.precision; }}};
}

ErrorSummary summary_of_all(const AccuracyView& view) {
  std::vector<const PredictedRow*> all;
  for (const PredictedRow& row : view.rows) {
    all.push_back(&row);
  }
  return summarize("all", all);
}

ScalingSummary scaling_summary(const AccuracyView& view, bool in_node) {
  ScalingSummary summary;
  for (const ScalingPair& pair : scaling_pairs(view.measured, view.rows)) {
    if (pair.is_in_node == in_node) {
      ++summary.pairs;
      summary.points += std::abs(pair.predicted - pair.measured) * 100;
    }
  }
  summary.points /= static_cast<double>(std::max<size_t>(1, summary.pairs));
  return summary;
}

DataParallelCoverage data_parallel_coverage(const AccuracyView& view) {
  DataParallelCoverage coverage;
  for (const PredictedRow& row : view.rows) {
    coverage.rows += row.is_data_parallel ? 1 : 0;
    coverage.predicted += row.is_data_parallel && row.predicted ? 1 : 0;
  }
  return coverage;
}

std::string accuracy_text(const AccuracyView& view) {
  const ErrorSummary all = summary_of_all(view);
  const DataParallelCoverage coverage = data_parallel_coverage(view);
  std::string text = fmt::format(
      "{} of {} rows are predicted; on one GPU, under dp or ddp: {} of {}\n"
      "error = |predicted / measured throughput - 1|; ratio = predicted / measured, geometric "
      "mean\n",
      all.rows, view.rows.size(), coverage.predicted, coverage.rows);
  const std::string head = fmt::format("{:>5} {:>7} {:>7} {:>7} {:>7} {:>7}  {}\n", "rows", "ratio",
                                       "mean", "median", "90 %", "worst", "worst row");
  text += fmt::format("\n  {:<26} {}{}", "", head, all.rows > 0 ? error_line(all) : "");
  for (const AccuracyGrouping& grouping : accuracy_groupings()) {
    text += fmt::format("\n  by {:<23} {}", grouping.title, head);
    for (const ErrorSummary& summary : summaries_by(view.rows, grouping.name_of)) {
      text += error_line(summary);
    }
  }
  for (const bool in_node : {true, false}) {
    const ScalingSummary scaling = scaling_summary(view, in_node);
    text += fmt::format("{}scaling efficiency {}: {:.1f} points off on average, {} pairs\n",
                        in_node ? "\n" : "", in_node ? "in a node" : "across nodes", scaling.points,
                        scaling.pairs);
  }
  text += "\nnot predicted\n";
  for (const MissingRows& missing : missing_rows(view.rows)) {
    text += fmt::format("  {:>5}  {}\n", missing.rows, missing.why);
  }
  return text;
}

}  // namespace lockstep::cli
