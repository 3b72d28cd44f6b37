#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/random.hpp"
#include "model/core/units.hpp"

namespace lockstep::sim {

/// Something that happens at a time. `target` is the caller's.
struct Event {
  Time time{};
  uint64_t order = 0;  ///< among equal times: first in, or drawn from the seed; the last apart
  uint64_t target = 0;
};

/// Pending events, earliest first: a 4-ary implicit heap, which beats the binary one because a
/// node's children share a cache line. With a seed, events of the same time before `drawn_before`
/// come in a drawn order, so that tests can permute what is really unordered.
class EventQueue {
 public:
  explicit EventQueue(std::optional<uint64_t> tie_seed, Time drawn_before = Time::max())
      : tie_seed_(tie_seed), drawn_before_(drawn_before) {}

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  /// All that are pending, earliest first.
  std::vector<Event> in_order() const {
    std::vector<Event> events = heap_;
    std::sort(events.begin(), events.end(), before);
    return events;
  }

  /// `last`: behind all others of its time, those that are still to be pushed among them. Of
  /// several such, those with the lowest targets come first.
  void push(Time time, uint64_t target, bool last = false) {
    const uint64_t number = pushed_++;
    const bool draws = tie_seed_ && time < drawn_before_;
    const uint64_t in_turn = last ? target & ~last_bit : number;
    const uint64_t order = draws ? random_bits(*tie_seed_, number) >> 1 : in_turn;
    heap_.push_back({time, last ? order | last_bit : order, target});
    rise(heap_.size() - 1);
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      sink(last);
    }
    return first;
  }

 private:
  static constexpr uint64_t last_bit = uint64_t{1} << 63;

  // Without a branch, which would be guessed wrong every other time.
  static bool before(const Event& a, const Event& b) {
    const int earlier = a.time < b.time ? 1 : 0;
    const int tied = a.time == b.time ? 1 : 0;
    return (earlier | (tied & (a.order < b.order ? 1 : 0))) != 0;
  }

  void rise(size_t hole) {
    const Event moving = heap_[hole];
    while (hole > 0) {
      const size_t parent = (hole - 1) / 4;
      if (!before(moving, heap_[parent])) {
        break;
      }
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = moving;
  }

  void sink(const Event& moving) {
    const size_t count = heap_.size();
    size_t hole = 0;
    for (size_t child = 1; child < count; child = 4 * hole + 1) {
      const size_t least = least_of(child, count);
      if (!before(heap_[least], moving)) {
        break;
      }
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = moving;
  }

  // Of the four children from `child` on, or those that there are.
  size_t least_of(size_t child, size_t count) const {
    if (child + 4 <= count) [[likely]] {
      const size_t left = child + (before(heap_[child + 1], heap_[child]) ? 1 : 0);
      const size_t right = child + 2 + (before(heap_[child + 3], heap_[child + 2]) ? 1 : 0);
      return before(heap_[right], heap_[left]) ? right : left;
    }
    size_t least = child;
    for (size_t other = child + 1; other < count; ++other) {
      least = before(heap_[other], heap_[least]) ? other : least;
    }
    return least;
  }

  std::optional<uint64_t> tie_seed_;
  Time drawn_before_;
  uint64_t pushed_ = 0;
  std::vector<Event> heap_;
};

}  // namespace lockstep::sim
