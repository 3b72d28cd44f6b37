#include "properties/rank_set.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

RankSet::RankSet(std::initializer_list<int32_t> ranks)
    : RankSet(std::span<const int32_t>(ranks.begin(), ranks.size())) {}

RankSet::RankSet(std::span<const int32_t> ranks) {
  std::vector<int32_t> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  for (const int32_t rank : sorted) {
    add(rank);
  }
}

RankSet RankSet::all(int32_t count) {
  RankSet set;
  if (count > 0) {
    set.runs_.push_back({0, count - 1});
  }
  return set;
}

void RankSet::add(int32_t rank) {
  // Ranks mostly come in ascending order, so the last run is the usual place.
  auto after = runs_.end();
  if (!runs_.empty() && rank <= runs_.back().last) {
    after = std::upper_bound(runs_.begin(), runs_.end(), rank,
                             [](int32_t value, const Run& run) { return value < run.first; });
  }
  if (after != runs_.begin() && rank <= std::prev(after)->last) {
    return;
  }
  const bool joins_before = after != runs_.begin() && std::prev(after)->last == rank - 1;
  const bool joins_after = after != runs_.end() && after->first == rank + 1;
  if (joins_before && joins_after) {
    std::prev(after)->last = after->last;
    runs_.erase(after);
  } else if (joins_before) {
    std::prev(after)->last = rank;
  } else if (joins_after) {
    after->first = rank;
  } else {
    runs_.insert(after, {rank, rank});
  }
}

void RankSet::add(const RankSet& other) {
  for (const int32_t rank : other.ranks()) {
    add(rank);
  }
}

bool RankSet::contains(int32_t rank) const {
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), rank,
                       [](int32_t value, const Run& run) { return value < run.first; });
  return after != runs_.begin() && rank <= std::prev(after)->last;
}

int64_t RankSet::size() const {
  int64_t count = 0;
  for (const Run& run : runs_) {
    count += int64_t{run.last} - run.first + 1;
  }
  return count;
}

bool RankSet::intersects(const RankSet& other) const {
  auto mine = runs_.begin();
  auto theirs = other.runs_.begin();
  while (mine != runs_.end() && theirs != other.runs_.end()) {
    if (mine->last < theirs->first) {
      ++mine;
    } else if (theirs->last < mine->first) {
      ++theirs;
    } else {
      return true;
    }
  }
  return false;
}

std::vector<int32_t> RankSet::ranks() const {
  std::vector<int32_t> list;
  list.reserve(static_cast<size_t>(size()));
  for (const Run& run : runs_) {
    for (int32_t rank = run.first; rank <= run.last; ++rank) {
      list.push_back(rank);
    }
  }
  return list;
}

std::string RankSet::text() const {
  constexpr size_t runs_shown_max = 16;
  const bool too_many = runs_.size() > runs_shown_max;
  std::string text;
  for (size_t i = 0; i < (too_many ? runs_shown_max - 1 : runs_.size()); ++i) {
    const Run& run = runs_[i];
    text += i == 0 ? "" : ", ";
    text += run.first == run.last ? fmt::format("{}", run.first)
                                  : fmt::format("{}-{}", run.first, run.last);
  }
  return too_many ? fmt::format("{}, .. ({} ranks)", text, size()) : text;
}

std::string RankSet::phrase() const {
  if (empty()) {
    return "no rank";
  }
  return fmt::format("{} {}", size() == 1 ? "rank" : "ranks", text());
}

std::string ranks_text(std::span<const int32_t> ranks) { return RankSet(ranks).text(); }

}  // namespace lockstep
