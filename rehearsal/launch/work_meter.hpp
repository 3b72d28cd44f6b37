#pragma once

#include <sys/types.h>

#include <chrono>

namespace lockstep::cli {

/// Whether a process works, by the time that processors gave it: a rank that waits for its peers
/// takes next to none, one that is stopped takes none.
class WorkMeter {
 public:
  explicit WorkMeter(pid_t process);
  /// Since the last call, of at least half a second ago: it had a tenth of a processor or more. An
  /// earlier call says no, and counts for nothing.
  bool worked();

 private:
  pid_t process_;
  std::chrono::steady_clock::time_point at_;
  std::chrono::milliseconds used_;
};

}  // namespace lockstep::cli
