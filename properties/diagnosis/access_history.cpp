#include "properties/diagnosis/access_history.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace lockstep {

void VectorClock::join(const VectorClock& other) {
  if (counts_.size() < other.counts_.size()) {
    counts_.resize(other.counts_.size(), 0);
  }
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    counts_[i] = std::max(counts_[i], other.counts_[i]);
  }
}

void VectorClock::set(size_t component, uint32_t count) {
  if (counts_.size() <= component) {
    counts_.resize(component + 1, 0);
  }
  counts_[component] = count;
}

// Of uses that are shorter than 2^exponent only those can overlap this one that begin in a range.
void AccessHistory::pass(OfOneLength& uses, size_t exponent, const Access& access,
                         const VectorClock& clock) {
  const int64_t end = access.slice.begin + access.slice.elements;
  const int64_t longest = int64_t{1} << std::min<size_t>(exponent, 62);
  const auto begins = [](const Earlier& earlier) { return earlier.access.slice.begin; };
  const auto first =
      std::ranges::lower_bound(uses, access.slice.begin - longest, std::less(), begins);
  auto kept = first;
  auto next = first;
  for (; next != uses.end() && next->access.slice.begin < end; ++next) {
    const Access& earlier = next->access;
    if (earlier.slice.overlaps(access.slice)) {
      const bool same_operation =
          earlier.component == access.component && earlier.count == access.count;
      const bool collides = earlier.writes || access.writes || access.releases;
      const bool ordered = earlier.before(clock);
      if (collides && !same_operation && !ordered) {
        found_.emplace_back(next->number, Race{earlier, access, {}, {}});
      }
      // Whoever is ordered after this use is ordered after what it covers and follows.
      const bool inside = access.slice.begin <= earlier.slice.begin &&
                          earlier.slice.begin + earlier.slice.elements <= end;
      const bool replaces = access.writes || (access.reads && !earlier.writes);
      if (inside && replaces && ordered) {
        continue;
      }
    }
    if (kept != next) {
      *kept = *next;
    }
    ++kept;
  }
  uses.erase(kept, next);
}

std::vector<Race> AccessHistory::add(const Access& access, const VectorClock& clock) {
  found_.clear();
  for (size_t exponent = 0; exponent < by_length_.size(); ++exponent) {
    if (!by_length_[exponent].empty()) {
      pass(by_length_[exponent], exponent, access, clock);
    }
  }
  if (access.slice.elements > 0) {
    const auto exponent =
        static_cast<size_t>(std::bit_width(static_cast<uint64_t>(access.slice.elements)));
    by_length_.resize(std::max(by_length_.size(), exponent + 1));
    OfOneLength& uses = by_length_[exponent];
    const auto behind =
        std::ranges::upper_bound(uses, access.slice.begin, std::less(),
                                 [](const Earlier& earlier) { return earlier.access.slice.begin; });
    uses.insert(behind, {access, added_++});
  }
  std::ranges::sort(found_, std::less(), &std::pair<uint64_t, Race>::first);
  std::vector<Race> races;
  for (auto& [number, race] : found_) {
    races.push_back(std::move(race));
  }
  return races;
}

}  // namespace lockstep
