#include "sim/periods.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::sim {

namespace {

/// Of those that go on alike, the last are run: what comes after them may ask what they did.
constexpr int64_t periods_kept = 1;

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
  loop.before_alike = start.first ? loop.periods : loop.before_alike;
  loop.memory = words_of(start.memory, rank);
  if (rank.place.rank.value == 0) {
    if (start.first) {
      known_states_[static_cast<size_t>(start.level)].clear();
    }
    find_cycle(start.level);
  }
  return count_period(rank, start.level);
}

// Says what all ranks leave out: from the first period on that none of them has begun, so that
// the calls of ranks still match.
void Periods::find_cycle(int32_t level) {
  std::deque<KnownState>& known = known_states_[static_cast<size_t>(level)];
  int64_t from = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  bool pending = false;
  for (const RankState& rank : world_.ranks) {
    const LoopState& loop = rank.loops[static_cast<size_t>(level)];
    const bool begins = rank.place.rank.value == 0;  // the others are within what they began last
    from = std::max(from, loop.periods);
    end = std::min(end, loop.periods + loop.alike - (begins ? 0 : 1));
    // Of the same level or one within it. What is left out of a loop around it comes later.
    pending =
        pending || std::any_of(rank.loops.begin(), rank.loops.begin() + level + 1,
                               [](const LoopState& each) { return each.left_out.cycles > 0; });
  }
  const int64_t alike = end - from - periods_kept;
  const RankState& first = world_.ranks.front();
  const Time skipped = first.skipped_times.empty() ? Time{} : first.skipped_times.back().time;
  KnownState now{{}, {}, {}, first.running->host + skipped};
  for (const RankState& rank : world_.ranks) {
    now.periods.push_back(rank.loops[static_cast<size_t>(level)].periods);
    now.submitted.push_back(rank.submitted);
  }
  bool may_come_back = alike > 0 && !pending && WorldState(world_).describe(level, now.words);
  for (int64_t periods = 1; may_come_back && 2 * periods <= std::ssize(known); ++periods) {
    const KnownState& before = known[static_cast<size_t>(periods - 1)];
    const KnownState& cycle_before = known[static_cast<size_t>(2 * periods - 1)];
    const int64_t cycles = alike / periods;
    if (cycles > 0 && is_cycle(level, cycle_before, before, now)) {
      for (RankState& rank : world_.ranks) {
        rank.loops[static_cast<size_t>(level)].left_out = {from, cycles, periods,
                                                           now.time - before.time};
      }
      may_come_back = false;
    }
  }
  known.push_front(std::move(now));
  if (std::ssize(known) > 2 * periods_of_cycle_max) {
    known.pop_back();
  }
  // Where something else comes in between, what was submitted is still compared with what follows.
  const auto too_old = may_come_back ? periods_of_cycle_max : 0;
  for (int64_t ago = too_old; ago < std::ssize(known); ++ago) {
    known[static_cast<size_t>(ago)].words = {};
  }
}

bool Periods::is_cycle(int32_t level, const KnownState& cycle_before, const KnownState& before,
                       const KnownState& now) const {
  if (before.words.empty() || before.words != now.words) {
    return false;
  }
  const int64_t periods = now.periods.front() - before.periods.front();
  return std::ranges::all_of(world_.ranks, [&](const RankState& rank) {
    const LoopState& loop = rank.loops[static_cast<size_t>(level)];
    const size_t index = rank.index;
    // Both cycles that are compared lie in the loop that the rank is in. Rank 0 begins a period,
    // the others are within theirs.
    const int64_t begun = cycle_before.periods[index] + (index == 0 ? 1 : 0);
    return begun > loop.before_alike && now.periods[index] - before.periods[index] == periods &&
           before.periods[index] - cycle_before.periods[index] == periods &&
           now.submitted[index].since(before.submitted[index]) ==
               before.submitted[index].since(cycle_before.submitted[index]);
  });
}

int64_t Periods::count_period(RankState& rank, int32_t level) {
  LoopState& loop = rank.loops[static_cast<size_t>(level)];
  const auto number = static_cast<int32_t>(rank.place.rank.value);
  const int64_t row = journal_ == nullptr ? 0 : journal_->lane(number, LaneId{}).size();
  TicketRing& tickets = rank.running->tickets;
  const bool leaves_out = loop.left_out.cycles > 0 && loop.periods == loop.left_out.from;
  const LeftOut left_out = leaves_out ? std::exchange(loop.left_out, {}) : LeftOut{};
  if (leaves_out) {
    const Time before = rank.skipped_times.empty() ? Time{} : rank.skipped_times.back().time;
    while (rank.skipped_times.size() > 1 &&
           rank.skipped_times[1].first_ticket <= tickets.low_water()) {
      rank.skipped_times.erase(rank.skipped_times.begin());
    }
    rank.skipped_times.push_back({tickets.next(), before + left_out.cycle * left_out.cycles});
    if (journal_ != nullptr) {
      if (journal_->repeated.empty()) {
        journal_->repeated = ByRank<std::vector<RepeatedRows>>(
            static_cast<size_t>(options_.world_size), options_.classes);
      }
      const LoopState::Period& begin = loop.ago(left_out.periods_of_cycle - 1);
      journal_->repeated[rank.place.rank.value].push_back(
          {begin.first_row, row, left_out.cycles, left_out.cycle, begin.left_out});
    }
  }
  ++loop.periods;
  const bool has_entries = journal_ != nullptr && !journal_->repeated.empty();
  const int64_t entries = has_entries ? std::ssize(journal_->repeated[rank.place.rank.value]) : 0;
  loop.ago(0) = {row, entries, rank.submitted};
  loop.first_ticket = tickets.next();
  return left_out.cycles * left_out.periods_of_cycle;
}

}  // namespace lockstep::sim
