#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "rehearsal/progress_line.hpp"

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

  /// `unit`: what is counted. Counts from 0 again.
  void expect(size_t count, const std::string& unit = "cases");
  void case_begins(const std::string& name);
  void case_ends();
  /// Takes the line away; nothing is shown from now on.
  void end();
  /// What is done within the case: "on one device"; ends what was reported of steps.
  void phase(const std::string& what, std::optional<Amount> amount = std::nullopt);
  /// Of a run: "step 12 of 200".
  void step(int64_t done, std::optional<int64_t> total);
  /// A line that stays, written at once.
  void announce(const std::string& what);

 private:
  void show();
  double now() const;

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex guard_;
  std::condition_variable ended_;
  bool end_ = false;
  ProgressLine line_;
  std::thread thread_;
};

/// For whoever may have been given none.
inline void tell(Progress* progress, const std::string& what,
                 std::optional<Amount> amount = std::nullopt) {
  if (progress != nullptr) {
    progress->phase(what, amount);
  }
}

}  // namespace lockstep::cli
