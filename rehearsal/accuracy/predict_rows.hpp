#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/accuracy/row_scenario.hpp"
#include "rehearsal/run/stop.hpp"

namespace lockstep::cli {

class Progress;

/// A published row beside what is predicted of it.
struct PredictedRow {
  std::string id{};
  RowClass group{};
  bool is_data_parallel = false;
  double measured = 0;                ///< samples per second of all GPUs
  std::optional<double> predicted{};  ///< likewise; none: `why_not` says why
  std::string why_not{};
  /// Predicted divided by measured throughput, minus 1; only with a prediction.
  double error() const { return *predicted / measured - 1; }
};

/// Rows of all files in their order, each predicted by a run of its scenario on one of so many
/// threads. Results do not depend on the number of threads. `software` is the value of
/// `versions.kernels` for every row, or "none": data sheets; empty: each row has its own profile,
/// with constants fitted without its source. Rows that the deadline stops say so.
/// `progress`: told how many are done; null: nobody.
std::vector<PredictedRow> predict_rows(const std::vector<ThroughputRow>& rows,
                                       const std::string& software, const Deadline& deadline,
                                       int threads, Progress* progress = nullptr);

/// The scenario of a row as a file that `lockstep run` takes.
struct RowRun {
  std::optional<double> samples_per_s{};
  std::string why_not{};
};
RowRun run_of_row(const std::string& yaml, const std::vector<std::string>& settings,
                  const Deadline& deadline);

}  // namespace lockstep::cli
