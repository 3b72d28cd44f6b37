#include "properties/diagnosis/access_history.hpp"

#include <algorithm>

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

std::vector<Race> AccessHistory::add(const Access& access, const VectorClock& clock) {
  std::vector<Race> races;
  size_t kept = 0;
  for (size_t number = 0; number < accesses_.size(); ++number) {
    const Access& earlier = accesses_[number];
    if (earlier.slice.overlaps(access.slice)) {
      const bool same_operation =
          earlier.component == access.component && earlier.count == access.count;
      const bool collides = earlier.writes || access.writes || access.releases;
      const bool ordered = earlier.before(clock);
      if (collides && !same_operation && !ordered) {
        races.push_back({earlier, access, {}, {}});
      }
      // Whoever is ordered after this use is ordered after what it covers and follows.
      const bool inside = access.slice.begin <= earlier.slice.begin &&
                          earlier.slice.begin + earlier.slice.elements <=
                              access.slice.begin + access.slice.elements;
      const bool replaces = access.writes || (access.reads && !earlier.writes);
      if (inside && replaces && ordered) {
        continue;
      }
    }
    if (kept != number) {
      accesses_[kept] = earlier;
    }
    ++kept;
  }
  accesses_.resize(kept);
  if (access.slice.elements > 0) {
    accesses_.push_back(access);
  }
  return races;
}

}  // namespace lockstep
