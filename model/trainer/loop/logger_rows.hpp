#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/trainer/loop/progress.hpp"
#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// The rows that one rank's loggers get (logger_connector.py).
class LoggerRows {
 public:
  /// All outlive the rows.
  LoggerRows(const TrainingProgram& program, RankLog& log, const Progress& progress)
      : program_(program), log_(log), progress_(progress) {}

  /// Whether loggers get a row of the batch that runs (should_update_logs).
  bool are_due() const;
  /// Gives the loggers a row, if there are values and loggers. Without `step`, that of the key
  /// `step`, else of training, and the epoch beside it.
  void add(std::map<std::string, double> values, std::optional<int64_t> step);

  /// How many rows there have been that count_left_out() can make again.
  int64_t listed() const { return listed_; }
  /// Those since so many; their steps and epochs are counted from those of `beginning`.
  std::vector<LoggerRow> since(int64_t listed, const Progress& beginning) const;
  /// Adds rows of a period that has been left out, which begins now.
  void add_left_out(const std::vector<LoggerRow>& rows);

 private:
  void list(LoggerRow row);

  const TrainingProgram& program_;
  RankLog& log_;
  const Progress& progress_;
  int64_t listed_ = 0;
};

}  // namespace lockstep
