#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/ids.hpp"
#include "model/core/units.hpp"

namespace lockstep::sim {

/// How many submissions of one rank have not finished, exactly, whatever order they finish in. It
/// counts only while the rank is near its limit; else the rings of its lanes are bound enough.
class LaunchQueue {
 public:
  bool counting() const { return counting_; }
  void begin() { counting_ = true; }
  void stop() {
    counting_ = false;
    finishes_.clear();
    head_ = 0;
    unknown_ = 0;
  }

  void submitted() { ++unknown_; }
  /// Nearly always the latest so far, so that a sorted list beats a heap; not where one host drives
  /// several devices.
  void finishes(Time finish) {
    --unknown_;
    const auto first = finishes_.begin() + static_cast<std::ptrdiff_t>(head_);
    const bool is_latest = first == finishes_.end() || finishes_.back() <= finish;
    finishes_.insert(is_latest ? finishes_.end() : std::upper_bound(first, finishes_.end(), finish),
                     finish);
  }
  int64_t unfinished(Time now) {
    while (head_ < finishes_.size() && finishes_[head_] <= now) {
      ++head_;
    }
    if (head_ * 2 > finishes_.size()) {
      finishes_.erase(finishes_.begin(), finishes_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return static_cast<int64_t>(finishes_.size() - head_) + unknown_;
  }
  /// When the next of those with a known end finishes. Ask `unfinished` first.
  std::optional<Time> next_finish() const {
    return head_ < finishes_.size() ? std::optional(finishes_[head_]) : std::nullopt;
  }

 private:
  friend class WorldState;
  bool counting_ = false;
  std::vector<Time> finishes_;  ///< ascending from head_
  size_t head_ = 0;
  int64_t unknown_ = 0;  ///< submissions whose end depends on what is not known yet
};

/// A place where a lane's host stands still until a ticket whose end nobody knows yet has finished.
struct Hold {
  Ticket until{};
  int64_t rows = 0;  ///< of the lane's journal, before what it submits next
};

}  // namespace lockstep::sim
