// How much may be left out before a fault begins or ends.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/periods.hpp"

namespace lockstep::sim {

// What a step is to a rank without a loop, only that rank knows.
int64_t Periods::periods_before_faults(const PeriodStart& start) const {
  const bool begins_with_follower = std::ranges::any_of(world_.ranks, [this](const auto& rank) {
    return rank.follower != nullptr && faults_.begins_with(rank.place.rank);
  });
  // Steps do not number micro-batches, and devices may still be at work on them when the next
  // begins.
  const bool may_strike = start.level == period_level::micro_batches && faults_.are_to_begin();
  return begins_with_follower || may_strike ? 0 : faults_.periods_before(start);
}

int64_t Periods::periods_until_ended(int32_t level) const {
  const auto at = static_cast<size_t>(level);
  int64_t periods = 0;
  for (const RankState& rank : world_.ranks) {
    const int64_t behind = world_.ranks.front().loops[at].periods - rank.loops[at].periods;
    periods =
        std::max(periods, std::max<int64_t>(0, behind) + std::ssize(rank.loops[at].unfinished));
  }
  return periods + 1;
}

// Where hosts run ahead, devices do the work of a period when its time is long over. How long that
// takes, and whether the fault has changed by then, is known once it is done.
bool Periods::repeats_what_has_ended(const KnownStates::Way& way, int32_t level) const {
  const int64_t begun = world_.ranks.front().loops[static_cast<size_t>(level)].periods;
  const int64_t first_under_way = begun - (periods_until_ended(level) - 1);
  const auto has_ended = [first_under_way](const KnownStates::Way::Taken& taken) {
    return taken.transition->first_number < first_under_way;
  };
  return std::ranges::all_of(way.before, has_ended) && std::ranges::all_of(way.cycle, has_ended);
}

std::optional<KnownStates::Way> Periods::way_before_faults(const PeriodStart& start,
                                                           const Begun& now,
                                                           const Room& room) const {
  const KnownStates& known = levels_[static_cast<size_t>(start.level)].known;
  const Time change = faults_.next_change(now.time);
  int64_t most = room.periods;
  while (most > 0) {
    std::optional<KnownStates::Way> way =
        known.way(*now.state, start, room.from - now.number, most, now.trail);
    if (!way || change == Time::max()) {
      return way;
    }
    if (!repeats_what_has_ended(*way, start.level)) {
      return std::nullopt;
    }
    Time longest{};
    Time before{};
    for (const auto& [transition, times] : way->before) {
      longest = std::max(longest, transition->time);
      before += transition->time * times;
    }
    Time turn{};
    for (const auto& [transition, times] : way->cycle) {
      longest = std::max(longest, transition->time);
      turn += transition->time * times;
    }
    const Time until = change - now.time - before - longest * periods_until_ended(start.level);
    const int64_t turns = turn > Time{} ? std::max<int64_t>(0, until / turn) : way->turns;
    if (turns > 0) {
      way->turns = std::min(way->turns, turns);
      return way;
    }
    // Of periods of several kinds fewer may come before it.
    most = std::min(most, way->periods) / 2;
  }
  return std::nullopt;
}

namespace {

bool have_ended(const RankState& rank, std::span<const uint32_t> ends, Time by) {
  for (size_t lane = 0; lane < rank.lanes.size(); ++lane) {
    const TicketRing& tickets = rank.lanes[lane]->tickets;
    const uint32_t end = lane < ends.size() ? ends[lane] : tickets.next();
    for (uint32_t sequence = tickets.low_water(); sequence < end; ++sequence) {
      const TicketState& state = tickets.state(sequence);
      if (!state.known() || state.finish > by) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

void Periods::note_unfinished(const RankState& rank, LoopState& loop) const {
  const LaneState& first = *rank.lanes.front();
  const Time host = first.waiting ? std::max(first.host, world_.agenda.now()) : first.host;
  std::vector<uint32_t> next;
  for (const auto& lane : rank.lanes) {
    next.push_back(lane->tickets.next());
  }
  const auto end_of_first = [&]() -> const std::vector<uint32_t>& {
    return loop.unfinished.size() > 1 ? loop.unfinished[1] : next;
  };
  while (!loop.unfinished.empty() && have_ended(rank, end_of_first(), host)) {
    loop.unfinished.erase(loop.unfinished.begin());
  }
  loop.unfinished.push_back(std::move(next));
}

}  // namespace lockstep::sim
