#pragma once

#include <string>

#include "io/sweep/sweep_file.hpp"

namespace lockstep::cli {

/// The file that the rows of a sweep are appended to, each as soon as it is there. Locked as long
/// as this lives, so that two processes never write to one file.
class SweepLog {
 public:
  /// Begins the file, or goes on with it where `resume` is true and it is of the same sweep and
  /// shard; a torn last line is cut off. Throws SweepError where it is there already, or of
  /// another sweep, or damaged, or used by another process; OutputError where it cannot be written.
  SweepLog(const std::string& path, const SweepHeader& header, bool resume);
  ~SweepLog();
  SweepLog(const SweepLog&) = delete;
  SweepLog& operator=(const SweepLog&) = delete;

  /// What the file held already.
  const SweepFile& before() const { return before_; }
  void append(const std::string& line);

 private:
  void go_on(const SweepHeader& header, bool resume);

  std::string path_;
  int descriptor_ = -1;
  SweepFile before_;
};

/// A whole file: the header, then all lines in order.
std::string sweep_text(const SweepHeader& header, const std::map<int64_t, std::string>& lines);

}  // namespace lockstep::cli
