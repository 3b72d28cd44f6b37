#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/rank/ticket_table.hpp"
#include "model/program/lane.hpp"
#include "model/program/run.hpp"

namespace lockstep::backend {

/// The lanes of one rank that may go on, in the order in which they go on, and those that wait.
class LaneQueue {
 public:
  bool has_ready() const { return !ready_.empty(); }
  void add(Lane& lane) { ready_.push_back(&lane); }
  Lane& take() {
    Lane& lane = *ready_.front();
    ready_.pop_front();
    return lane;
  }

  /// The lane may go on once all or any of the tickets have settled. wake() finds out.
  void wait(std::span<const Ticket> tickets, Until until, Lane& lane) {
    waiters_.push_back({{tickets.begin(), tickets.end()}, until, &lane});
  }
  /// Those whose tickets have settled may go on.
  void wake(const TicketTable& tickets) {
    std::erase_if(waiters_, [&](const Waiter& waiter) {
      if (!tickets.settled(waiter.tickets, waiter.until)) {
        return false;
      }
      ready_.push_back(waiter.lane);
      return true;
    });
  }

  /// A lane stands in the middle of a submission, for lack of room; none: it goes on.
  void hold_back(std::optional<LaneId> lane) { held_back_ = lane; }
  /// What all of them wait for, by lane.
  std::vector<WaitingLane> waiting(int32_t rank, const TicketTable& tickets) const {
    std::vector<WaitingLane> waiting;
    for (const Waiter& waiter : waiters_) {
      waiting.push_back({rank, waiter.lane->id(), waiter.until, waiter.tickets});
    }
    if (held_back_) {
      std::vector<Ticket> queue_full;
      if (const auto oldest = tickets.oldest_pending()) {
        queue_full.push_back(*oldest);
      }
      waiting.push_back({rank, *held_back_, Until::all, std::move(queue_full)});
    }
    std::ranges::sort(waiting, {}, &WaitingLane::lane);
    return waiting;
  }

 private:
  struct Waiter {
    std::vector<Ticket> tickets;
    Until until = Until::all;
    Lane* lane = nullptr;
  };

  std::deque<Lane*> ready_;
  std::vector<Waiter> waiters_;
  std::optional<LaneId> held_back_;
};

}  // namespace lockstep::backend
