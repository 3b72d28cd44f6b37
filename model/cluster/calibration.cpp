#include "model/cluster/calibration.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"

namespace lockstep {

int32_t nearest_ranks(const std::vector<int32_t>& measured, int32_t ranks) {
  ensure(!measured.empty(), "something was measured");
  const auto distance = [ranks](int32_t candidate) {
    return static_cast<double>(std::max(candidate, ranks)) / std::min(candidate, ranks);
  };
  int32_t nearest = measured.front();
  for (const int32_t candidate : measured) {
    const double gain = distance(nearest) - distance(candidate);
    if (gain > 0 || (gain == 0 && candidate > nearest)) {
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace lockstep
