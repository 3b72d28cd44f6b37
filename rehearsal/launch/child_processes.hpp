#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

/// One program to start.
struct ChildCommand {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> variables;  ///< added to those of this process
  int inherited_descriptor = -1;  ///< the child finds it as descriptor 3; -1: none
};

/// How a child ended.
struct ChildEnd {
  bool ended = false;
  int exit_code = 0;        ///< when it ended by itself
  int signal = 0;           ///< else the signal that ended it
  std::string last_line{};  ///< of its error output
};

/// A group of child processes. Their output goes line by line to `output`, with the number of
/// the child. The destructor ends and reaps what is left, so no orphan stays.
class ChildProcesses {
 public:
  using Output = std::function<void(size_t child, const std::string& line)>;
  using Clock = std::chrono::steady_clock;

  explicit ChildProcesses(Output output) : output_(std::move(output)) {}
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Throws std::system_error when the program cannot be started.
  void start(const ChildCommand& command);
  /// Passes output on until `done` says so, all children have ended, or the time has come.
  void run_until(Clock::time_point time, const std::function<bool()>& done);
  /// Passes on the available output, and sees who has ended; never waits.
  void look();
  /// Asks what still runs to end (SIGTERM), and ends it after `grace` (SIGKILL).
  void end_all(std::chrono::milliseconds grace);

  bool all_ended() const;
  /// The child that ended first; absent: none has.
  std::optional<size_t> first_ended() const { return first_ended_; }
  const ChildEnd& end(size_t child) const { return children_[child].end; }
  size_t size() const { return children_.size(); }
  pid_t process(size_t child) const { return children_[child].process; }

 private:
  struct Child {
    pid_t process = 0;
    int output[2] = {-1, -1};  ///< read ends of its output and its error output
    std::string line[2];
    ChildEnd end;
  };
  void poll_once(std::chrono::milliseconds wait);
  void read_from(size_t child, int which);
  void reap();
  void signal_all(int number);

  Output output_;
  std::vector<Child> children_;
  std::optional<size_t> first_ended_;
};

}  // namespace lockstep::cli
