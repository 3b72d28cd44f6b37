#include "sim/periods.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "sim/repeated_periods.hpp"

namespace lockstep::sim {

namespace {

/// Of those that go on alike, the last are run: what comes after them may ask what they did.
constexpr int64_t periods_kept = 1;
/// Kinds of later periods that a transition may depend on.
constexpr int64_t kinds_kept = 8;

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

// What the last of the loop's marks leaves out from a time on, as rows of a lane.
void add_entries(const LoopState& loop, const LeftOut& left_out, size_t lane, size_t first_entry,
                 Time at, int32_t level, std::vector<RepeatedRows>& entries) {
  const auto row_at = [lane](const LoopState::Mark& mark) {
    return lane < mark.rows.size() ? mark.rows[lane] : 0;  // 0: it had not begun yet
  };
  const int64_t here = row_at(loop.marks.back());
  for (const RepeatedPeriods& each : *left_out.repeated) {
    if (each.entries_from) {  // what has just been put back
      entries.push_back({here, here, here, each.times, each.time, each.later,
                         static_cast<int64_t>(first_entry + *each.entries_from),
                         std::ssize(entries), at, level});
    } else {
      const LoopState::Mark& begin = loop.marks[static_cast<size_t>(each.first)];
      const LoopState::Mark& end = loop.marks[static_cast<size_t>(each.end)];
      entries.push_back({here, row_at(begin), row_at(end), each.times, each.time, each.later,
                         begin.left_out_here, end.left_out, at, level});
    }
    at += each.time * each.times;
  }
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

PeriodsLeftOut Periods::begin(RankState& rank, const PeriodStart& start) {
  LoopState& loop = rank.loops[static_cast<size_t>(start.level)];
  loop.alike = start.alike;
  loop.memory = words_of(start.memory, rank);
  if (start.forgets) {
    levels_[static_cast<size_t>(start.level)] = {};
  }
  if (rank.place.rank.value != 0) {
    return count_period(rank, start);
  }
  find_cycle(start);
  for (RankState& follower : world_.ranks) {
    if (follower.follower != nullptr) {
      follower.follower->period_begins(start.level, count_period(follower, start));
    }
  }
  return count_period(rank, start);
}

void Periods::add_follower(RankState& rank) const {
  for (size_t level = 0; level < rank.loops.size(); ++level) {
    LoopState& loop = rank.loops[level];
    loop.periods = world_.ranks.front().loops[level].periods;
    if (journal_ != nullptr) {
      loop.marks.resize(static_cast<size_t>(loop.periods));
    }
  }
}

Periods::Room Periods::room_of(int32_t level, int64_t from) const {
  Room room;
  room.from = from;
  int64_t end = std::numeric_limits<int64_t>::max();
  for (const RankState& rank : world_.ranks) {
    const LoopState& loop = rank.loops[static_cast<size_t>(level)];
    const bool begins = rank.place.rank.value == 0;  // the others are within what they began last
    if (rank.follower == nullptr) {
      room.from = std::max(room.from, loop.periods);
      end = std::min(end, loop.periods + loop.alike - (begins ? 0 : 1));
    }
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
  Room room = room_of(start.level, start.first ? now.number + 1 : now.number);
  if (!faults_.empty()) {  // one begins with a host, and concerns what it has submitted before
    room.periods = std::min(room.periods, periods_before_faults(start) - (room.from - now.number) -
                                              periods_until_ended(start.level));
  }
  now.is_first = start.first;
  now.time = first.running->host + first.skipped;
  now.left_out = first.times_left_out;
  now.ahead = start.reaches_back;
  for (const RankState& rank : world_.ranks) {
    now.submitted.push_back(rank.submitted);
    const int64_t begun = rank.loops[static_cast<size_t>(start.level)].periods;
    now.within.push_back(begun - 1);
    now.ahead = std::max(now.ahead, rank.follower == nullptr ? begun - now.number : 0);
  }
  if (room.periods <= 0 && level.known.are_large()) {  // hardly any more is left out in this loop
    level = {};
  }
  const bool follows = level.last && !start.first && level.last->number == now.number - 1;
  StateWords words;
  words.clear();
  words.add(faults_.changes_by(now.time));
  if (room.periods > 0 && !room.pending && WorldState(world_).describe(start.level, words)) {
    now.state = level.known.number_of(std::move(words));
  }
  const LeftOut& own = first.loops[static_cast<size_t>(start.level)].left_out;
  const bool leaves_out = own.periods > 0 && own.from == now.number;
  if (leaves_out && !now.state) {  // decided at the beginning of an earlier one
    now.state = level.planned;
  }
  if (follows) {
    note_transition(level, start, now, room.from);
  }
  if (now.state && !room.pending) {
    leave_out(start, now, room);
  }
  int64_t left_out = 0;  // by rank 0, before it begins this one
  if (own.periods > 0 && own.from == now.number) {
    left_out = own.periods;
    now.time += own.time;
    ++now.left_out;
    now.is_behind_left_out = true;
  }
  for (int64_t period = left_out; period < std::min(start.alike, left_out + kinds_kept); ++period) {
    now.kinds.push_back(start.kind_of(period));
  }
  level.last = std::move(now);
}

void Periods::note_transition(Level& level, const PeriodStart& start, Begun& now,
                              int64_t from) const {
  const Begun& last = *level.last;
  if (!were_of_kinds(last, start.level)) {
    return;
  }
  const int64_t begun_by_some = std::max<int64_t>(1, from - last.number);
  const auto begun = static_cast<size_t>(begun_by_some + (has_programs_beside() ? 1 : 0));
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
  const bool has_repeated =
      start.kinds != nullptr && !last.is_first && now.left_out > last.left_out;
  const bool is_proven = !level.submitted.insert(submitted).second || has_repeated;
  if (last.state && now.state) {
    now.trail = last.trail;
    now.trail.add(KnownStates::key_of(*last.state, kinds));
    level.known.note(*last.state, {std::move(kinds), *now.state, last.number, last.number,
                                   last.time, now.time - last.time, last.is_behind_left_out,
                                   is_proven, last.ahead, last.trail.last(last.ahead)});
  }
}

// Kinds are those of rank 0. A rank whose loop ends before or behind its own does then what they do
// not tell.
bool Periods::were_of_kinds(const Begun& last, int32_t level) const {
  const auto at = static_cast<size_t>(level);
  const int64_t unlike_on_first = world_.ranks.front().loops[at].last_unlike;
  for (size_t rank = 1; rank < world_.ranks.size(); ++rank) {
    const LoopState& loop = world_.ranks[rank].loops[at];
    if (world_.ranks[rank].follower != nullptr || loop.last_unlike == unlike_on_first) {
      continue;
    }
    const bool is_known_until = loop.periods - 1 + std::max<int64_t>(1, loop.alike) > last.number;
    if (loop.last_unlike >= last.within[rank] || !is_known_until) {
      return false;
    }
  }
  return true;
}

void Periods::leave_out(const PeriodStart& start, const Begun& now, const Room& room) {
  Level& level = levels_[static_cast<size_t>(start.level)];
  const std::optional<KnownStates::Way> way = has_programs_beside()
                                                  ? way_to_same_kind(start, now, room)
                                                  : way_before_faults(start, now, room);
  if (!way) {
    return;
  }
  level.planned = way->state;
  const std::vector<RepeatedPeriods> cycle = repeated_periods(*way, now.time);
  const Time time = total_of(cycle);
  std::vector<RepeatedPeriods> repeated = folded(cycle);
  if (way->turns > 1) {
    repeated.push_back({0, 0, way->turns - 1, time, time, 0});
  }
  const auto shared = std::make_shared<const std::vector<RepeatedPeriods>>(std::move(repeated));
  for (RankState& rank : world_.ranks) {
    rank.loops[static_cast<size_t>(start.level)].left_out = {room.from, way->periods * way->turns,
                                                             shared, time * way->turns};
  }
}

bool Periods::has_programs_beside() const {
  return std::ranges::any_of(world_.ranks, [](const RankState& rank) {
    return rank.lanes.size() > 1 || rank.follower != nullptr;
  });
}

// Such a program may wait already for what another rank does in the next period, and what it has
// submitted before ends as it does there: that must be a period of the same kind as the first that
// is left out.
std::optional<KnownStates::Way> Periods::way_to_same_kind(const PeriodStart& start,
                                                          const Begun& now, Room room) const {
  const int64_t first = room.from - now.number;
  for (int attempt = 0; attempt < 16 && room.periods > 0; ++attempt) {
    const std::optional<KnownStates::Way> way = way_before_faults(start, now, room);
    if (!way) {
      return std::nullopt;
    }
    const int64_t left_out = way->periods * way->turns;
    const int64_t behind = first + left_out;
    if (behind < start.alike && start.kind_of(first) == start.kind_of(behind)) {
      return way;
    }
    room.periods = left_out - 1;
  }
  return std::nullopt;
}

PeriodsLeftOut Periods::count_period(RankState& rank, const PeriodStart& start) {
  LoopState& loop = rank.loops[static_cast<size_t>(start.level)];
  if (journal_ != nullptr) {
    const bool has_entries = !journal_->repeated.empty();
    const int64_t entries = has_entries ? std::ssize(journal_->repeated[rank.place.rank.value]) : 0;
    std::vector<int64_t> rows;
    for (const auto& lane : rank.lanes) {
      rows.push_back(
          journal_->lane(static_cast<int32_t>(rank.place.rank.value), lane->lane.id()).size());
    }
    loop.marks.push_back({std::move(rows), entries, entries});
  }
  const TicketRing& tickets = rank.lanes.front()->tickets;
  const bool leaves_out = loop.left_out.periods > 0 && loop.periods == loop.left_out.from;
  const LeftOut left_out = leaves_out ? std::exchange(loop.left_out, {}) : LeftOut{};
  if (leaves_out) {
    rank.skipped += left_out.time;
    for (const auto& lane : rank.lanes) {
      lane->skip_until(rank.skipped);
    }
    if (start.level == period_level::micro_batches) {
      count_as_submitted(rank, left_out.periods);
    } else {
      ++rank.times_left_out;
    }
    loop.alike = std::max<int64_t>(0, loop.alike - left_out.periods);
    note_left_out(rank, start.level, left_out);
  }
  const int64_t number = loop.periods++;
  if (left_out.periods >= start.alike) {
    loop.last_unlike = number;
  }
  loop.kind =
      left_out.periods < start.alike ? start.kind_of(left_out.periods) : LoopState::any_kind;
  loop.submitted = rank.submitted;
  loop.first_ticket = tickets.next();
  loop.tickets_left_out = 0;
  if (!faults_.empty()) {
    note_unfinished(rank, loop);
  }
  return {number, left_out.periods, left_out.repeated};
}

// Periods around them are alike however many of their micro-batches were simulated: each submits
// what the one did that has just ended.
void Periods::count_as_submitted(RankState& rank, int64_t micro_batches) {
  const LoopState& within = rank.loops[period_level::micro_batches];
  const int64_t tickets = int64_t{rank.lanes.front()->tickets.next()} - within.first_ticket;
  rank.submitted.add_again(within.submitted, micro_batches);
  for (size_t level = period_level::batches; level < rank.loops.size(); ++level) {
    rank.loops[level].tickets_left_out += tickets * micro_batches;
  }
}

void Periods::note_left_out(RankState& rank, int32_t level, const LeftOut& left_out) {
  if (journal_ == nullptr) {
    return;
  }
  if (journal_->repeated.empty()) {
    const auto ranks = static_cast<size_t>(options_.world_size);
    journal_->repeated = ByRank<std::vector<RepeatedRows>>(ranks, options_.classes);
    journal_->repeated_beside =
        ByRank<std::vector<std::vector<RepeatedRows>>>(ranks, options_.classes);
  }
  const uint32_t number = rank.place.rank.value;
  std::vector<RepeatedRows>& entries = journal_->repeated[number];
  std::vector<std::vector<RepeatedRows>>& beside = journal_->repeated_beside[number];
  LoopState& loop = rank.loops[static_cast<size_t>(level)];
  LoopState::Mark& here = loop.marks.back();
  const auto first_entry = static_cast<size_t>(here.left_out);
  const Time at = rank.lanes.front()->host + rank.skipped - left_out.time;
  add_entries(loop, left_out, 0, first_entry, at, level, entries);
  beside.resize(rank.lanes.size() - 1);
  for (size_t lane = 1; lane < rank.lanes.size(); ++lane) {
    std::vector<RepeatedRows>& own = beside[lane - 1];
    for (size_t entry = own.size(); entry < first_entry; ++entry) {
      own.push_back(entries[entry]);  // from before it came
      own.back().row = own.back().begin = own.back().end = 0;
    }
    add_entries(loop, left_out, lane, first_entry, at, level, own);
  }
  here.left_out_here = std::ssize(entries);
}

}  // namespace lockstep::sim
