#include "rehearsal/launch/occupancy.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "rehearsal/measure/interval_union.hpp"

namespace lockstep::cli {

double stream_occupancy(const Journal& journal, Time end) {
  if (end <= Time{} || journal.ranks() == 0 || !journal.options().completions) {
    return 0;
  }
  Time busy{};
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    std::vector<std::pair<Time, Time>> intervals;
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      journal.lane(rank, lane).for_each([&](const Row& row) {
        if (row.row == RowKind::op && row.kind != OpKind::host) {
          const Completion& completion = journal.lane(rank, lane).completion(row.sequence);
          if (completion.outcome == Outcome::ok) {
            intervals.emplace_back(completion.start, std::min(completion.finish, end));
          }
        }
      });
    }
    busy += length_of_union(std::move(intervals));
  }
  return static_cast<double>(busy.count()) / static_cast<double>(end.count()) / journal.ranks();
}

}  // namespace lockstep::cli
