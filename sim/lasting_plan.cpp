#include "sim/lasting_plan.hpp"

#include <algorithm>

namespace lockstep::sim {

TransferPlan lasting(const TransferPlan& modelled, Time fixed, Time on_links,
                     const std::vector<BytesPerSecond>& capacities) {
  if (modelled.links == nullptr || modelled.links->empty() || on_links <= Time{}) {
    return {fixed + std::max(Time{}, on_links), {}, nullptr, nullptr};
  }
  const auto weight = [&modelled](size_t place) {
    return modelled.weights == nullptr ? 1 : int64_t{(*modelled.weights)[place]};
  };
  // The link that takes longest for a volume decides how much volume takes the time.
  double least_rate = 0;
  size_t narrowest = 0;
  for (size_t place = 0; place < modelled.links->size(); ++place) {
    const double rate = static_cast<double>(capacities[(*modelled.links)[place]].count()) /
                        static_cast<double>(weight(place));
    if (place == 0 || rate < least_rate) {
      least_rate = rate;
      narrowest = place;
    }
  }
  TransferPlan plan = modelled;
  plan.volume = Bytes(static_cast<int64_t>(seconds(on_links) * least_rate));
  const Time rounded = plan.volume * weight(narrowest) / capacities[(*modelled.links)[narrowest]];
  plan.latency = std::max(Time{}, fixed + on_links - rounded);
  return plan;
}

}  // namespace lockstep::sim
