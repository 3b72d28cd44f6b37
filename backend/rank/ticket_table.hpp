#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep::backend {

/// The tickets of one rank: per lane, numbered from 1. Not thread-safe.
class TicketTable {
 public:
  /// Observer of what became of tickets; may be null.
  void follow(JournalFollower* follower) { follower_ = follower; }
  Ticket add(LaneId lane, Time issue);
  void start(Ticket ticket, Time now);
  /// The first outcome is kept; false when there was one already.
  bool settle(Ticket ticket, const Status& status, Time now);
  /// Gives every pending ticket this outcome. Their finish stays zero: they never did.
  void end_pending(Outcome outcome);

  /// Ticket 0 is always settled.
  bool settled(Ticket ticket) const;
  bool settled(std::span<const Ticket> tickets, Until until) const;
  Status status(Ticket ticket) const;
  /// The pending ticket that was issued first.
  std::optional<Ticket> oldest_pending() const;

  /// Writes all completions to the rank's part of the journal.
  void write_to(Journal& journal, int32_t rank) const;

 private:
  struct State {
    Completion completion;
    Bytes bytes{};
  };
  const State& state(Ticket ticket) const;
  State& state(Ticket ticket);

  JournalFollower* follower_ = nullptr;
  std::vector<std::deque<State>> lanes_;  ///< by lane, then sequence - 1
};

}  // namespace lockstep::backend
