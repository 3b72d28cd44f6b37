#include "sim/launch_limit.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::sim {

// Promises and host work are no launches. The rings hold at least what has not finished, so nothing
// is counted while they are short.
void LaunchLimit::make_room(RankState& rank, LaneState& lane) const {
  int64_t bound = lane.tickets.in_flight();
  if (rank.lanes.size() > 1) {
    bound = 0;
    for (const auto& each : rank.lanes) {
      bound += each->tickets.in_flight();
    }
  }
  if (bound < submissions_) [[likely]] {
    if (rank.launched.counting()) {
      rank.launched.unfinished(lane.host);
      if (bound < submissions_ / 2) {
        rank.launched.stop();
      }
    }
    return;
  }
  if (!rank.launched.counting()) {
    count_launched(rank);
  }
  if (holds(rank, lane)) {
    hold(rank, lane);
    return;
  }
  while (rank.launched.unfinished(lane.host) >= submissions_) {
    const std::optional<Time> next = rank.launched.next_finish();
    if (!next) {
      hold(rank, lane);
      return;
    }
    lane.host = *next;
  }
  lane.tickets.retire(lane.host);
}

void LaunchLimit::count_launched(RankState& rank) {
  rank.launched.begin();
  for (const auto& lane : rank.lanes) {
    const TicketRing& ring = lane->tickets;
    for (uint32_t sequence = ring.low_water(); sequence < ring.next(); ++sequence) {
      const Ticket ticket{sequence, lane->lane.id()};
      const auto& promises = rank.open_promises;
      if (std::find(promises.begin(), promises.end(), ticket) != promises.end()) {
        continue;
      }
      rank.launched.submitted();
      if (ring.state(sequence).known()) {
        rank.launched.finishes(ring.state(sequence).finish);
      }
    }
  }
}

// Nobody knows yet when there will be room: it depends on a peer. The program runs on, since it
// cannot stop in the middle of a submission, but what it submits starts, and what it waits for
// ends, no earlier than the launch that it would stand behind; if that never ends the lane stands
// there.
void LaunchLimit::hold(RankState& rank, LaneState& lane) const {
  const TicketRing& ring = lane.tickets;
  uint32_t sequence = ring.low_water();
  if (!lane.holds.empty()) {
    sequence = std::max(sequence, lane.holds.back().until.sequence + 1);
  }
  const auto& promises = rank.open_promises;
  while (sequence < ring.next() &&
         (ring.state(sequence).known() ||
          std::find(promises.begin(), promises.end(), Ticket{sequence, lane.lane.id()}) !=
              promises.end())) {
    ++sequence;
  }
  if (sequence == ring.next()) {
    return;  // all that is in flight is of other lanes
  }
  const int64_t rows =
      journal_ == nullptr
          ? 0
          : journal_->lane(static_cast<int32_t>(rank.place.rank.value), lane.lane.id()).size();
  lane.holds.push_back({{sequence, lane.lane.id()}, rows});
}

bool LaunchLimit::holds(const RankState& rank, LaneState& lane) {
  size_t ended = 0;
  for (; ended < lane.holds.size(); ++ended) {
    const Ticket until = lane.holds[ended].until;
    const TicketRing& ring = rank.lanes[until.lane.value]->tickets;
    if (ring.retired(until.sequence)) {
      continue;
    }
    if (!ring.state(until.sequence).known()) {
      break;
    }
    lane.host = std::max(lane.host, ring.state(until.sequence).finish);
  }
  lane.holds.erase(lane.holds.begin(), lane.holds.begin() + static_cast<std::ptrdiff_t>(ended));
  return !lane.holds.empty();
}

}  // namespace lockstep::sim
