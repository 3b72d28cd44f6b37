#include "sim/periods.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace lockstep::sim {

namespace {

/// Of those that go on alike, the last are run: what comes after them may ask what they did.
constexpr int64_t periods_kept = 1;
/// Kinds of later periods that a transition may depend on.
constexpr int64_t kinds_kept = 8;
/// Ranks that do the same may take turns.
constexpr size_t periods_of_cycle_max = 8;
/// Entries for a cycle whose periods lie apart.
constexpr int64_t repeats_apart_max = 256;

// A ticket that the lane has forgotten is done for good, however long ago that was.
std::vector<int64_t> words_of(const ProgramMemory* memory, const RankState& rank) {
  if (memory == nullptr) {
    return {};
  }
  std::vector<int64_t> words = memory->numbers;
  for (const Ticket ticket : memory->tickets) {
    const TicketRing& tickets = rank.lanes[ticket.lane.value]->tickets;
    words.push_back(int64_t{ticket.lane.value});
    words.push_back(
        ticket ? int64_t{tickets.next()} - std::max(ticket.sequence, tickets.low_water()) : -1);
  }
  return words;
}

Time skipped_by(const RankState& rank) {
  return rank.skipped_times.empty() ? Time{} : rank.skipped_times.back().time;
}

// Transitions as periods that were simulated one after the other.
std::vector<RepeatedPeriods> repeated_periods(const KnownStates::Way& way, Time begin) {
  std::vector<RepeatedPeriods> repeated;
  for (size_t at = 0; at < way.transitions.size(); ++at) {
    const KnownStates::Transition& each = way.transitions[at];
    const bool is_left_out = std::cmp_greater_equal(at, way.before);
    if (is_left_out && !repeated.empty() && repeated.back().end == each.number) {
      ++repeated.back().end;
      repeated.back().time += each.time;
    } else if (is_left_out) {
      repeated.push_back({each.number, each.number + 1, 1, each.time, begin - each.begin});
    }
    begin += each.time;
  }
  return repeated;
}

// The same ones again, and again.
std::vector<RepeatedPeriods> together(const std::vector<RepeatedPeriods>& all) {
  std::vector<RepeatedPeriods> merged;
  for (const RepeatedPeriods& each : all) {
    if (!merged.empty() && merged.back().first == each.first && merged.back().end == each.end) {
      ++merged.back().times;
    } else {
      merged.push_back(each);
    }
  }
  return merged;
}

// A cycle whose periods lie apart.
std::vector<RepeatedPeriods> one_after_the_other(const std::vector<RepeatedPeriods>& cycle,
                                                 int64_t times, Time time) {
  std::vector<RepeatedPeriods> all;
  for (int64_t turn = 0; turn < times; ++turn) {
    for (RepeatedPeriods each : cycle) {
      each.later += time * turn;
      all.push_back(each);
    }
  }
  return all;
}

}  // namespace

void Periods::note_submitted(RankState& rank, const Op& op) {
  const uint64_t what = static_cast<uint64_t>(op.kind) << 56 |
                        static_cast<uint64_t>(op.kernel) << 48 |
                        static_cast<uint64_t>(op.dtype) << 40 | uint64_t{op.stream.value} << 24 |
                        (op.group.value & 0xffffffu);
  const uint64_t size =
      random_key(static_cast<uint64_t>(op.bytes.count()) ^ what, static_cast<uint64_t>(op.work));
  const auto peer = static_cast<uint64_t>(static_cast<uint32_t>(op.peer));
  rank.submitted.add(random_key(size, uint64_t{op.site.value} << 32 ^ peer));
}

int64_t Periods::begin(RankState& rank, const PeriodStart& start) {
  LoopState& loop = rank.loops[static_cast<size_t>(start.level)];
  loop.alike = start.alike;
  loop.memory = words_of(start.memory, rank);
  if (rank.place.rank.value == 0) {
    find_cycle(start);
  }
  return count_period(rank, start);
}

Periods::Room Periods::room_of(int32_t level, int64_t from) const {
  Room room;
  room.from = from;
  int64_t end = std::numeric_limits<int64_t>::max();
  for (const RankState& rank : world_.ranks) {
    const LoopState& loop = rank.loops[static_cast<size_t>(level)];
    const bool begins = rank.place.rank.value == 0;  // the others are within what they began last
    room.from = std::max(room.from, loop.periods);
    end = std::min(end, loop.periods + loop.alike - (begins ? 0 : 1));
    // Of the same level or one within it. What is left out of a loop around it comes later.
    room.pending = room.pending ||
                   std::any_of(rank.loops.begin(), rank.loops.begin() + level + 1,
                               [](const LoopState& each) { return each.left_out.periods > 0; });
  }
  room.periods = end - room.from - periods_kept;
  return room;
}

void Periods::find_cycle(const PeriodStart& start) {
  Level& level = levels_[static_cast<size_t>(start.level)];
  const RankState& first = world_.ranks.front();
  Begun now;
  now.number = first.loops[static_cast<size_t>(start.level)].periods;
  // What a program leaves out it counts as often as the period before: the first of its loop runs.
  const Room room = room_of(start.level, start.first ? now.number + 1 : now.number);
  now.is_first = start.first;
  now.time = first.running->host + skipped_by(first);
  now.left_out = first.skipped_times_ever;
  for (const RankState& rank : world_.ranks) {
    now.submitted.push_back(rank.submitted);
  }
  const bool follows = level.last && !start.first && level.last->number == now.number - 1;
  StateWords words;
  if (room.periods > 0 && !room.pending && WorldState(world_).describe(start.level, words)) {
    const int64_t forgotten = level.known.forgotten();
    now.state = level.known.number_of(std::move(words));
    if (level.known.forgotten() != forgotten) {
      level.last.reset();
    }
  }
  if (follows && level.last) {
    now.earlier = std::move(level.last->earlier);
    now.earlier.insert(now.earlier.begin(), level.last->state);
    now.earlier.resize(std::min(now.earlier.size(), periods_of_cycle_max));
    note_transition(level, start, now, room.from);
  }
  int64_t left_out = 0;  // by rank 0, at once
  if (now.state) {
    leave_out(start, now, room);
    const LeftOut& own = first.loops[static_cast<size_t>(start.level)].left_out;
    if (own.periods > 0 && own.from == now.number) {
      left_out = own.periods;
      now.time += own.time;
      ++now.left_out;
    }
  }
  for (int64_t period = left_out; period < std::min(start.alike, left_out + kinds_kept); ++period) {
    now.kinds.push_back(start.kind_of(period));
  }
  level.last = std::move(now);
}

void Periods::note_transition(Level& level, const PeriodStart& start, const Begun& now,
                              int64_t from) {
  const Begun& last = *level.last;
  const auto begun = static_cast<size_t>(std::max<int64_t>(1, from - last.number));
  if (last.kinds.size() < begun) {
    return;
  }
  std::vector<int64_t> kinds(last.kinds.begin(),
                             last.kinds.begin() + static_cast<std::ptrdiff_t>(begun));
  uint64_t submitted = 0;
  for (const int64_t kind : kinds) {
    submitted = random_key(submitted, static_cast<uint64_t>(kind));
  }
  for (size_t rank = 0; rank < now.submitted.size(); ++rank) {
    submitted = random_key(submitted, now.submitted[rank].since(last.submitted[rank]));
  }
  // Where periods are of many kinds, what lies within them tells that the program is past its
  // beginning: it has repeated itself.
  const bool has_repeated = !start.kinds.empty() && !last.is_first && now.left_out > last.left_out;
  const bool is_proven = !level.submitted.insert(submitted).second || has_repeated;
  if (last.state && now.state) {
    level.known.note(*last.state, {std::move(kinds), *now.state, last.number, last.time,
                                   now.time - last.time, is_proven});
  }
}

void Periods::leave_out(const PeriodStart& start, const Begun& now, const Room& room) {
  const auto kind_of = [&start](int64_t period) { return start.kind_of(period); };
  const Level& level = levels_[static_cast<size_t>(start.level)];
  const std::optional<KnownStates::Way> way = level.known.way(
      *now.state, room.from - now.number, room.periods, start.alike, start.kinds.empty(), kind_of);
  if (!way) {
    return;
  }
  const int64_t cycle = way->cycle();
  std::vector<RepeatedPeriods> repeated = together(repeated_periods(*way, now.time));
  Time time{};
  for (const RepeatedPeriods& each : repeated) {
    time += each.time * each.times;
  }
  int64_t times = way->times;
  const auto before = static_cast<size_t>(cycle - 1);
  const bool has_just_been = before < now.earlier.size() && now.earlier[before] == now.state;
  if (start.kinds.empty() && has_just_been) {
    repeated = {{room.from - cycle, room.from, times, time, time}};
  } else if (times > 1 && repeated.size() == 1) {
    repeated.front().times = times;
  } else if (times > 1) {
    times = std::min(times, std::max<int64_t>(1, repeats_apart_max / std::ssize(repeated)));
    repeated = one_after_the_other(repeated, times, time);
  }
  const auto shared = std::make_shared<const std::vector<RepeatedPeriods>>(std::move(repeated));
  for (RankState& rank : world_.ranks) {
    rank.loops[static_cast<size_t>(start.level)].left_out = {room.from, cycle * times, shared,
                                                             time * times};
  }
}

int64_t Periods::count_period(RankState& rank, const PeriodStart& start) {
  LoopState& loop = rank.loops[static_cast<size_t>(start.level)];
  const auto number = static_cast<int32_t>(rank.place.rank.value);
  if (journal_ != nullptr) {
    const bool has_entries = !journal_->repeated.empty();
    const int64_t entries = has_entries ? std::ssize(journal_->repeated[rank.place.rank.value]) : 0;
    loop.marks.push_back({journal_->lane(number, LaneId{}).size(), entries, entries});
  }
  TicketRing& tickets = rank.running->tickets;
  const bool leaves_out = loop.left_out.periods > 0 && loop.periods == loop.left_out.from;
  const LeftOut left_out = leaves_out ? std::exchange(loop.left_out, {}) : LeftOut{};
  if (leaves_out) {
    const Time before = skipped_by(rank);
    while (rank.skipped_times.size() > 1 &&
           rank.skipped_times[1].first_ticket <= tickets.low_water()) {
      rank.skipped_times.erase(rank.skipped_times.begin());
    }
    rank.skipped_times.push_back({tickets.next(), before + left_out.time});
    ++rank.skipped_times_ever;
    note_left_out(rank, loop, left_out);
  }
  ++loop.periods;
  loop.kind =
      left_out.periods < start.alike ? start.kind_of(left_out.periods) : LoopState::any_kind;
  loop.submitted = rank.submitted;
  loop.first_ticket = tickets.next();
  return left_out.periods;
}

void Periods::note_left_out(RankState& rank, LoopState& loop, const LeftOut& left_out) {
  if (journal_ == nullptr) {
    return;
  }
  if (journal_->repeated.empty()) {
    journal_->repeated = ByRank<std::vector<RepeatedRows>>(static_cast<size_t>(options_.world_size),
                                                           options_.classes);
  }
  std::vector<RepeatedRows>& entries = journal_->repeated[rank.place.rank.value];
  LoopState::Mark& here = loop.marks.back();
  for (const RepeatedPeriods& each : *left_out.repeated) {
    const LoopState::Mark& begin = loop.marks[static_cast<size_t>(each.first)];
    const LoopState::Mark& end = loop.marks[static_cast<size_t>(each.end)];
    entries.push_back({here.row, begin.row, end.row, each.times, each.time, each.later,
                       begin.left_out_here, end.left_out});
  }
  here.left_out_here = std::ssize(entries);
}

}  // namespace lockstep::sim
