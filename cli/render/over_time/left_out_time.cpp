#include "cli/render/over_time/left_out_time.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace lockstep::cli {

namespace {

// Where the rank's thread was when it submitted an operation; nothing: it never was.
std::optional<Time> clock_at(const LaneJournal& lane, const Row& row) {
  if (row.row != RowKind::op) {
    return std::nullopt;
  }
  const Completion done = lane.completion(row.sequence);
  if (done.outcome != Outcome::ok) {
    return std::nullopt;
  }
  return row.kind == OpKind::host ? done.start : done.issue;
}

}  // namespace

// The first operation behind what was left out says where its last stretch ends; stretches that end
// before the same operation follow one another without a gap.
std::vector<LeftOutStretch> left_out_stretches(const Journal& journal, int32_t rank, Time total) {
  std::vector<LeftOutStretch> stretches;
  if (journal.repeated.empty()) {
    return stretches;
  }
  for (const RepeatedRows& rows : journal.repeated[static_cast<size_t>(rank)]) {
    stretches.push_back({Time{}, rows});
  }
  size_t known = 0;
  size_t pending = 0;
  const auto place = [&](Time end) {
    for (size_t at = pending; at > known; --at) {
      end -= stretches[at - 1].rows.period * stretches[at - 1].rows.periods;
      stretches[at - 1].begin = end;
    }
    known = pending;
  };
  const LaneJournal& lane = journal.lane(rank, 0);
  int64_t index = 0;
  lane.for_each([&](const Row& row) {
    while (pending < stretches.size() && stretches[pending].rows.row <= index) {
      ++pending;
    }
    if (pending > known) {
      if (const std::optional<Time> clock = clock_at(lane, row)) {
        place(*clock);
      }
    }
    ++index;
  });
  pending = stretches.size();
  place(total);
  return stretches;
}

Time simulated_moment(const std::vector<LeftOutStretch>& stretches, Time moment) {
  for (auto end = stretches.end(); end != stretches.begin();) {
    const auto behind =
        std::upper_bound(stretches.begin(), end, moment,
                         [](Time at, const LeftOutStretch& one) { return at < one.begin; });
    if (behind == stretches.begin()) {
      break;
    }
    const LeftOutStretch& last = *std::prev(behind);
    if (moment >= last.end()) {
      break;
    }
    moment = last.repeats(moment);
    end = std::prev(behind);
  }
  return moment;
}

}  // namespace lockstep::cli
