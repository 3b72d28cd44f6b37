#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>

namespace lockstep::cli {

/// When to give up. The answer is then undecided, never a verdict.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  Deadline() = default;
  /// `seconds` is positive; beyond what a clock counts there is no deadline.
  explicit Deadline(std::optional<double> seconds) {
    constexpr double longest_s = 1e9;
    if (seconds && *seconds < longest_s) {
      at_ = Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
    }
  }
  bool passed() const { return at_ && Clock::now() >= *at_; }

 private:
  std::optional<Clock::time_point> at_;
};

inline constexpr const char* time_limit_reached = "the time limit was reached";

/// Ends a rank's program once the deadline has passed.
class TimeLimitReached final : public std::runtime_error {
 public:
  TimeLimitReached() : std::runtime_error(time_limit_reached) {}
};

}  // namespace lockstep::cli
