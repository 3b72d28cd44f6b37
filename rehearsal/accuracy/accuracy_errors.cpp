#include "rehearsal/accuracy/accuracy_errors.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::cli {

namespace {

/// Nearest rank; `sorted` is not empty.
double percentile_of(const std::vector<double>& sorted, double fraction) {
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

/// What two rows share that differ in the number of GPUs alone.
std::string scaling_key(const ThroughputRow& row) {
  std::string key = row.source;
  for (const char* column : {"system", "gpu", "framework", "model", "precision", "seq_len",
                             "micro_batch", "grad_accum", "activation_checkpointing", "layers"}) {
    key += "|" + (std::string(column) == "system" && row.source != "lambda_gpu_bench"
                      ? std::string()
                      : row.text(column));
  }
  return key;
}

}  // namespace

ErrorSummary summarize(const std::string& name, const std::vector<const PredictedRow*>& rows) {
  ErrorSummary summary{.name = name};
  std::vector<double> errors;
  std::vector<double> times;
  double logarithms = 0;
  for (const PredictedRow* row : rows) {
    if (!row->predicted) {
      continue;
    }
    const double error = std::abs(row->error());
    errors.push_back(error);
    times.push_back(*row->predicted / row->measured);
    logarithms += std::log(*row->predicted / row->measured);
    if (errors.size() == 1 || error > summary.worst) {
      summary.worst = error;
      summary.worst_row = row->id;
    }
  }
  summary.rows = errors.size();
  if (errors.empty()) {
    return summary;
  }
  std::ranges::sort(errors);
  std::ranges::sort(times);
  for (const double error : errors) {
    summary.mean += error / static_cast<double>(errors.size());
  }
  summary.ratio = std::exp(logarithms / static_cast<double>(errors.size()));
  const size_t half = errors.size() / 2;
  summary.median = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  summary.ninetieth = percentile_of(errors, 0.9);
  summary.low = percentile_of(times, 0.05);
  summary.high = percentile_of(times, 0.95);
  return summary;
}

std::vector<ErrorSummary> summaries_by(
    const std::vector<PredictedRow>& rows,
    const std::function<std::string(const PredictedRow&)>& name_of) {
  std::map<std::string, std::vector<const PredictedRow*>> groups;
  for (const PredictedRow& row : rows) {
    if (row.predicted) {
      groups[name_of(row)].push_back(&row);
    }
  }
  std::vector<ErrorSummary> summaries;
  for (const auto& [name, members] : groups) {
    summaries.push_back(summarize(name, members));
  }
  return summaries;
}

std::vector<MissingRows> missing_rows(const std::vector<PredictedRow>& rows) {
  std::map<std::string, MissingRows> reasons;
  for (const PredictedRow& row : rows) {
    if (!row.predicted) {
      MissingRows& missing = reasons[row.why_not];
      missing.why = row.why_not;
      ++missing.rows;
      missing.data_parallel += row.is_data_parallel ? 1 : 0;
    }
  }
  std::vector<MissingRows> sorted;
  for (const auto& [why, missing] : reasons) {
    sorted.push_back(missing);
  }
  std::ranges::stable_sort(
      sorted, [](const MissingRows& a, const MissingRows& b) { return a.rows > b.rows; });
  return sorted;
}

std::vector<ScalingPair> scaling_pairs(const std::vector<ThroughputRow>& rows,
                                       const std::vector<PredictedRow>& predicted) {
  std::map<std::string, size_t> one_gpu;
  for (size_t at = 0; at < rows.size(); ++at) {
    if (predicted[at].predicted && predicted[at].group.gpus == 1) {
      one_gpu.emplace(scaling_key(rows[at]), at);
    }
  }
  std::vector<ScalingPair> pairs;
  for (size_t at = 0; at < rows.size(); ++at) {
    const PredictedRow& many = predicted[at];
    const auto found = one_gpu.find(scaling_key(rows[at]));
    if (!many.predicted || many.group.gpus == 1 || found == one_gpu.end()) {
      continue;
    }
    const PredictedRow& one = predicted[found->second];
    const auto gpus = static_cast<double>(many.group.gpus);
    pairs.push_back({many.id, many.group.nodes == 1, many.measured / one.measured / gpus,
                     *many.predicted / *one.predicted / gpus});
  }
  return pairs;
}

}  // namespace lockstep::cli
