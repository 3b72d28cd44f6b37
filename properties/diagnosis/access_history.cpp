#include "properties/diagnosis/access_history.hpp"

#include <algorithm>

namespace lockstep {

void VectorClock::join(const VectorClock& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()), 0);
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    counts_[i] = std::max(counts_[i], other.counts_[i]);
  }
}

void VectorClock::set(size_t component, uint32_t count) {
  counts_.resize(std::max(counts_.size(), component + 1), 0);
  counts_[component] = count;
}

std::vector<Race> AccessHistory::add(const Access& access, const VectorClock& clock) {
  std::vector<Race> races;
  for (const Access& earlier : accesses_) {
    const bool same_operation =
        earlier.component == access.component && earlier.count == access.count;
    const bool collides = earlier.writes || access.writes || access.releases;
    if (collides && !same_operation && earlier.slice.overlaps(access.slice) &&
        !earlier.before(clock)) {
      races.push_back({earlier, access});
    }
  }
  // Whoever is ordered after this use is ordered after what it covers and follows.
  const auto covered = [&](const Access& earlier) {
    const bool inside =
        access.slice.begin <= earlier.slice.begin &&
        earlier.slice.begin + earlier.slice.elements <= access.slice.begin + access.slice.elements;
    const bool replaces = access.writes || (access.reads && !earlier.writes);
    return inside && replaces && earlier.before(clock);
  };
  accesses_.erase(std::remove_if(accesses_.begin(), accesses_.end(), covered), accesses_.end());
  accesses_.push_back(access);
  return races;
}

}  // namespace lockstep
