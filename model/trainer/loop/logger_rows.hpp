#pragma once

#include <map>
#include <optional>
#include <string>

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

 private:
  const TrainingProgram& program_;
  RankLog& log_;
  const Progress& progress_;
};

}  // namespace lockstep
