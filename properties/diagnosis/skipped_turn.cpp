#include "properties/diagnosis/skipped_turn.hpp"

#include <algorithm>
#include <set>

namespace lockstep {

namespace {

// The rows at which a lane came to one site, in order.
std::vector<int64_t> rows_of(const Decisions& decisions, SiteId site) {
  std::vector<int64_t> rows;
  for (const Decision& decision : decisions.all()) {
    if (decision.site == site) {
      rows.push_back(decision.row);
    }
  }
  return rows;
}

// The turn in which a row stands: -1 before the first.
int64_t turn_at(const std::vector<int64_t>& rows, int64_t row) {
  return std::lower_bound(rows.begin(), rows.end(), row) - rows.begin() - 1;
}

// Sites of which some turn was taken differently, in the order in which the left side came there.
std::vector<SiteId> sites_that_differ(const Decisions& left, const Decisions& right) {
  std::vector<SiteId> sites;
  std::set<SiteId> known;
  for (const Decision& mine : left.all()) {
    const Decision* const theirs =
        known.contains(mine.site) ? nullptr : right.at(mine.site, mine.turn);
    if (theirs != nullptr && theirs->value != mine.value) {
      known.insert(mine.site);
      sites.push_back(mine.site);
    }
  }
  return sites;
}

}  // namespace

std::optional<SkippedTurn> skipped_turn(const DecidedCalls& left, const DecidedCalls& right,
                                        size_t end) {
  std::optional<SkippedTurn> first;
  int64_t left_out_row = 0;  // of what was found: where the other side left
  const size_t both = std::min({left.calls.size(), right.calls.size(), end});
  for (const SiteId site : sites_that_differ(left.decisions, right.decisions)) {
    const std::vector<int64_t> left_rows = rows_of(left.decisions, site);
    const std::vector<int64_t> right_rows = rows_of(right.decisions, site);
    for (size_t k = 0; k < (first ? first->position + 1 : both); ++k) {
      const Call& a = left.calls[k];
      const Call& b = right.calls[k];
      if (a.ticket.lane != left.lane || b.ticket.lane != right.lane) {
        break;
      }
      const int64_t left_turn = turn_at(left_rows, a.row);
      const int64_t right_turn = turn_at(right_rows, b.row);
      if (left_turn == right_turn) {
        continue;
      }
      const bool left_calls = left_turn < right_turn;
      const int64_t turn = std::min(left_turn, right_turn);
      const Decision* const mine = (left_calls ? left : right).decisions.at(site, turn);
      const Decision* const theirs = (left_calls ? right : left).decisions.at(site, turn);
      // Of several decisions of that turn the last before it was left.
      const bool is_last =
          !first || k < first->position || (theirs != nullptr && theirs->row > left_out_row);
      if (is_last && mine != nullptr && theirs != nullptr && mine->value != theirs->value) {
        first = SkippedTurn{k, left_calls, *mine};
        left_out_row = theirs->row;
      }
      break;
    }
  }
  return first;
}

}  // namespace lockstep
