#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep::cli {

/// How far a command is: one line on standard error, written again and again once a second has
/// gone by, and taken away in the end. Many threads may report to it.
class Progress {
 public:
  /// Not shown: nothing is ever written.
  explicit Progress(bool shown);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void expect_cases(size_t count);
  void case_begins(const std::string& name);
  void case_ends();
  /// Takes the line away; nothing is shown from now on.
  void end();
  /// What is done within the case: "schedule 12".
  void step(const std::string& what);
  /// A line that stays, written at once.
  void announce(const std::string& what);

 private:
  void show();
  std::string line(double seconds) const;

  std::mutex guard_;
  std::condition_variable ended_;
  bool end_ = false;
  size_t cases_ = 0;
  size_t done_ = 0;
  std::string case_;
  std::string step_;
  std::thread thread_;
};

/// For whoever may have been given none.
inline void tell(Progress* progress, const std::string& what) {
  if (progress != nullptr) {
    progress->step(what);
  }
}

}  // namespace lockstep::cli
