#include "properties/invariants/deterministic.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

namespace {

std::string text_of(const Completion& completion) {
  return fmt::format("{} issued {} ps, started {} ps, finished {} ps, source {}",
                     name_of(completion.outcome), completion.issue.count(),
                     completion.start.count(), completion.finish.count(), completion.source.value);
}

void compare_completions(const Journal& left, const Journal& right, size_t limit,
                         std::vector<JournalDifference>& found) {
  for (int32_t rank = 0; rank < left.ranks(); ++rank) {
    for (int32_t lane = 0; lane < left.lanes(rank); ++lane) {
      int64_t index = -1;
      left.lane(rank, lane).for_each([&](const Row& row) {
        ++index;
        if (row.row != RowKind::op || found.size() >= limit) {
          return;
        }
        const std::string a = text_of(left.lane(rank, lane).completion(row.sequence));
        const std::string b = text_of(right.lane(rank, lane).completion(row.sequence));
        if (a != b) {
          found.push_back({rank, lane, index, fmt::format("{} | {}", a, b)});
        }
      });
    }
  }
}

}  // namespace

std::vector<JournalDifference> deterministic(const RunResult& left, const RunResult& right,
                                             size_t limit) {
  std::vector<JournalDifference> found;
  if (left.journal != nullptr && right.journal != nullptr) {
    found = differences(*left.journal, *right.journal, limit);
    if (found.empty()) {
      compare_completions(*left.journal, *right.journal, limit, found);
    }
  }
  const size_t ranks = std::max(left.ends.size(), right.ends.size());
  for (size_t rank = 0; rank < ranks && found.size() < limit; ++rank) {
    const bool both = rank < left.ends.size() && rank < right.ends.size();
    if (!both || left.ends[rank].kind != right.ends[rank].kind ||
        left.ends[rank].message != right.ends[rank].message) {
      found.push_back({static_cast<int32_t>(rank), 0, 0, "the rank ended differently"});
    }
  }
  return found;
}

}  // namespace lockstep
