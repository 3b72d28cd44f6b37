#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/loop/progress.hpp"
#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// The rows that one rank's loggers get (logger_connector.py).
class LoggerRows {
 public:
  /// All outlive the rows. `is_first`: of rank 0.
  LoggerRows(const TrainingProgram& program, RankLog& log, const Progress& progress, bool is_first)
      : program_(program), log_(log), progress_(progress), notes_rates_(is_first) {}

  /// Whether loggers get a row of the batch that runs (should_update_logs).
  bool are_due() const;
  /// Gives the loggers a row, if there are values and loggers. Without `step`, that of the key
  /// `step`, else of training, and the epoch beside it.
  void add(std::map<std::string, double> values, std::optional<int64_t> step);

  /// The same of a LearningRateMonitor, with the present step.
  void add_rates(std::map<std::string, double> values);
  /// Where a batch begins behind which an optimizer steps: the log of rank 0 gets the rates, if
  /// loggers get a row of it and schedulers step within epochs.
  void note_rates(const OptimizerRates& rates);

  /// How many rows there have been that add_left_out() can make again.
  int64_t listed() const { return listed_; }
  /// Those since so many; their steps and epochs are counted from those of `beginning`. Rates that
  /// schedulers change from step to step are left out of them.
  std::vector<LoggerRow> since(int64_t listed, const Progress& beginning) const;
  /// Adds rows of a period that has been left out, which begins now.
  void add_left_out(const std::vector<LoggerRow>& rows);
  /// Whether rates may differ between steps that repeat each other.
  static bool rates_change(const TrainingProgram& program) {
    return !program.schedulers.empty() && program.trainer.automatic_optimization;
  }

 private:
  void list(LoggerRow row);

  const TrainingProgram& program_;
  RankLog& log_;
  const Progress& progress_;
  bool notes_rates_;
  int64_t listed_ = 0;
};

}  // namespace lockstep
