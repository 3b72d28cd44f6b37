#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/core/failure.hpp"
#include "model/core/ids.hpp"

namespace lockstep::sim {

inline constexpr uint32_t no_index = 0xffffffffu;

/// State of one submission. `finish` is valid once no part is open; it may lie in the
/// future.
struct TicketState {
  Time finish{};
  uint32_t waiters = no_index;  ///< head of a list of waiter nodes
  uint32_t open_parts = 0;
  bool known() const { return open_parts == 0; }
};

/// The tickets of one lane: a power-of-two ring of those that are not yet certain to lie in the
/// past. Below the low-water mark everything has settled well; what did not is kept apart.
class TicketRing {
 public:
  Ticket open(LaneId lane, uint32_t parts) {
    if (next_ - low_water_ == states_.size()) {
      grow();
    }
    const uint32_t sequence = next_++;
    states_[sequence & mask_] = {Time{}, no_index, parts};
    return {sequence, lane};
  }

  bool retired(uint32_t sequence) const { return sequence < low_water_; }
  TicketState& state(uint32_t sequence) { return states_[sequence & mask_]; }
  const TicketState& state(uint32_t sequence) const { return states_[sequence & mask_]; }
  size_t capacity() const { return states_.size(); }
  uint32_t in_flight() const { return next_ - low_water_; }
  uint32_t low_water() const { return low_water_; }
  uint32_t next() const { return next_; }

  /// Forgets the oldest tickets that have finished by `now`: whatever starts later need not ask.
  void retire(Time now) {
    while (low_water_ < next_) {
      const TicketState& oldest = states_[low_water_ & mask_];
      if (!oldest.known() || oldest.finish > now) {
        break;
      }
      ++low_water_;
    }
  }

  /// Statuses of the tickets that did not simply succeed.
  std::unordered_map<uint32_t, Status> told;

 private:
  void grow() {
    std::vector<TicketState> larger(states_.size() * 2);
    const uint32_t mask = static_cast<uint32_t>(larger.size()) - 1;
    for (uint32_t sequence = low_water_; sequence < next_; ++sequence) {
      larger[sequence & mask] = states_[sequence & mask_];
    }
    states_ = std::move(larger);
    mask_ = mask;
  }

  uint32_t low_water_ = 1;
  uint32_t next_ = 1;
  uint32_t mask_ = 7;
  std::vector<TicketState> states_ = std::vector<TicketState>(8);
};

}  // namespace lockstep::sim
