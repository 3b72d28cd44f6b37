#include "properties/diagnosis/lane_times.hpp"

#include <algorithm>

namespace lockstep {

Time first_issue(const LaneJournal& rows) {
  Time first = Time::max();
  rows.for_each([&](const Row& row) {
    if (row.row == RowKind::op) {
      first = std::min(first, rows.completion(row.sequence).issue);
    }
  });
  return first;
}

Time time_past(const Journal& journal, int32_t rank, const Row& row) {
  if (row.row == RowKind::op) {
    return journal.lane(rank, 0).completion(row.sequence).issue;
  }
  const bool settles = row.row == RowKind::settle && row.peer < journal.lanes(rank);
  return settles ? journal.lane(rank, row.peer).completion(row.sequence).finish : Time();
}

}  // namespace lockstep
