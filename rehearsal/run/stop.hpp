#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "rehearsal/run/value_memory.hpp"

namespace lockstep::cli {

/// What a case is doing, and what it has done: for whoever gives it up meanwhile.
class PhaseOfCase {
 public:
  void note(std::string text) {
    const std::lock_guard lock(guard_);
    text_ = std::move(text);
  }
  std::string text() const {
    const std::lock_guard lock(guard_);
    return text_;
  }

 private:
  mutable std::mutex guard_;
  std::string text_;
};

/// What one case may use up: time, memory for values, and calls of ranks. The answer is undecided,
/// never a verdict, once a limit is reached or the user has interrupted the command. Copies share
/// the interruption.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Bytes usual_value_memory = Bytes(int64_t{4} << 30);

  Deadline() : Deadline(std::nullopt) {}
  /// `seconds` is positive; beyond what a clock counts there is no deadline.
  explicit Deadline(std::optional<double> seconds,
                    std::optional<Bytes> value_memory = usual_value_memory)
      : values_(std::make_shared<ValueMemory>(value_memory.value_or(usual_value_memory))) {
    constexpr double longest_s = 1e9;
    if (seconds && *seconds < longest_s) {
      at_ = Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
    }
  }
  /// Returns the same limits with a separate count of values, and a phase of its own.
  Deadline for_another_case() const {
    Deadline other = *this;
    other.values_ = std::make_shared<ValueMemory>(values_->most());
    other.phase_ = std::make_shared<PhaseOfCase>();
    return other;
  }
  /// Returns the same limits, of which each run ends after so many operations and choices of ranks.
  Deadline with_calls_at_most(int64_t calls) const {
    Deadline other = *this;
    other.calls_max_ = calls;
    return other;
  }
  /// Whether a run whose ranks have made so many calls goes on.
  bool allows(int64_t calls) const { return !calls_max_ || calls <= *calls_max_; }

  bool passed() const { return interrupted() || (at_ && Clock::now() >= *at_); }
  std::optional<Clock::time_point> at() const { return at_; }

  /// The user asks for an end: from now on it has passed.
  void interrupt() const { interrupted_->store(true, std::memory_order_relaxed); }
  bool interrupted() const { return interrupted_->load(std::memory_order_relaxed); }

  /// Why it has passed, or why a run was ended.
  const char* reason() const {
    return interrupted()             ? "the command was interrupted"
           : calls_max_ && !passed() ? "the limit of calls was reached"
                                     : "the time limit was reached";
  }
  /// "findings of 20 steps on 64 ranks were looked for", which follows "while"; empty: ranks run.
  PhaseOfCase& phase() const { return *phase_; }
  const std::shared_ptr<ValueMemory>& values() const { return values_; }

 private:
  std::optional<Clock::time_point> at_;
  std::optional<int64_t> calls_max_;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<ValueMemory> values_;
  std::shared_ptr<PhaseOfCase> phase_ = std::make_shared<PhaseOfCase>();
};

/// For whoever may have been given none.
inline void note_phase(const Deadline* deadline, std::string text) {
  if (deadline != nullptr) {
    deadline->phase().note(std::move(text));
  }
}

/// Ends a rank's program once the deadline has passed.
class TimeLimitReached final : public std::runtime_error {
 public:
  explicit TimeLimitReached(const Deadline& deadline) : std::runtime_error(deadline.reason()) {}
};

}  // namespace lockstep::cli
