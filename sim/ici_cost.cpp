#include "sim/ici_cost.hpp"

#include <algorithm>

#include "sim/lasting_plan.hpp"
#include "sim/plain_cost.hpp"

namespace lockstep::sim {

std::vector<int64_t> slice_shape(int64_t chips, int dimensions) {
  const bool is_power_of_two = chips > 0 && (chips & (chips - 1)) == 0;
  if (!is_power_of_two) {
    return {chips};
  }
  std::vector<int64_t> shape(static_cast<size_t>(std::max(1, dimensions)), 1);
  for (size_t edge = shape.size(); chips > 1; chips /= 2) {
    edge = edge == 0 ? shape.size() - 1 : edge - 1;
    shape[edge] *= 2;
  }
  return shape;
}

SliceTime slice_time(const InterChipLinks& links, OpKind kind, Bytes bytes, int64_t members) {
  if (members < 2) {
    return {};
  }
  const int64_t chips = (members + links.cores - 1) / links.cores;
  int64_t rings = 0;
  int64_t around = 0;
  for (const int64_t edge : slice_shape(chips, links.dimensions)) {
    const bool is_joined = links.ring_from > 0 && edge >= links.ring_from;
    rings += is_joined ? 1 : 0;
    around += edge;
  }
  const bool is_torus = rings > 0;
  const CollectiveVolume volume = ring_volume(kind, bytes, members);
  const int64_t phases = volume.steps > members ? 2 : 1;
  constexpr int64_t directions = 2;
  // One ring through all members else: every mesh with an even number of chips has one.
  return {links.hop * (phases * (is_torus ? around : members) / directions),
          volume.bytes / (links.rate * (directions * std::max<int64_t>(1, rings)))};
}

TransferPlan IciCommunicationCost::collective(const CollectiveCall& call) {
  const auto members = static_cast<int64_t>(call.members.size());
  if (members < 2) {
    return {};
  }
  const SliceTime time = slice_time(links_, call.kind, call.bytes, members);
  return lasting(network_.over_rings(call), time.hops, time.transfer, link_capacities());
}

}  // namespace lockstep::sim
