#include "sim/plain_cost.hpp"

#include <bit>

#include "model/core/ensure.hpp"

namespace lockstep::sim {

namespace {
Bytes share(Bytes bytes, int64_t numerator, int64_t denominator) {
  return Bytes(narrow_to_int64((static_cast<Int128>(bytes.count()) * numerator + denominator / 2) /
                               denominator));
}
}  // namespace

CollectiveVolume ring_volume(OpKind kind, Bytes bytes, int64_t members) {
  const int64_t others = members - 1;
  switch (kind) {
    case OpKind::all_reduce: return {2 * others, share(bytes, 2 * others, members)};
    case OpKind::reduce_scatter:
    case OpKind::all_to_all: return {others, share(bytes, others, members)};
    case OpKind::all_gather:
    case OpKind::gather:
    case OpKind::scatter: return {others, bytes * others};
    case OpKind::broadcast:
    case OpKind::reduce: return {others, members > 1 ? bytes : Bytes{}};
    case OpKind::new_group: return {others, Bytes(8) * others};
    case OpKind::barrier: return {2 * others, share(Bytes(4), 2 * others, members)};
    default: return {};
  }
}

CollectiveVolume tree_volume(OpKind kind, Bytes bytes, int64_t members) {
  const auto depth = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(members - 1)));
  switch (kind) {
    case OpKind::all_reduce: return {2 * depth, members > 1 ? bytes * 2 : Bytes{}};
    case OpKind::broadcast:
    case OpKind::reduce: return {depth, members > 1 ? bytes : Bytes{}};
    case OpKind::barrier: return {2 * depth, members > 1 ? Bytes(8) : Bytes{}};
    default: {
      // Data that differs by member gains nothing from a tree: the ring's volume in tree steps.
      const CollectiveVolume ring = ring_volume(kind, bytes, members);
      return {depth, ring.bytes};
    }
  }
}

FlatNetworkCost::FlatNetworkCost(int32_t ranks, BytesPerSecond bandwidth, Time latency,
                                 Algorithm algorithm)
    : latency_(latency),
      algorithm_(algorithm),
      capacities_(static_cast<size_t>(ranks) * 2, bandwidth),
      pair_links_(static_cast<size_t>(ranks)) {}

const std::vector<LinkIndex>& FlatNetworkCost::links_of(const CollectiveCall& call) {
  auto& links = group_links_[call.communicator];
  if (links.empty() && call.members.size() > 1) {
    links.reserve(call.members.size() * 2);
    for (const int32_t member : call.members) {
      links.push_back(static_cast<LinkIndex>(2 * member));
      links.push_back(static_cast<LinkIndex>(2 * member + 1));
    }
  }
  return links;
}

TransferPlan FlatNetworkCost::collective(const CollectiveCall& call) {
  const auto members = static_cast<int64_t>(call.members.size());
  const CollectiveVolume volume = algorithm_ == Algorithm::ring
                                      ? ring_volume(call.kind, call.bytes, members)
                                      : tree_volume(call.kind, call.bytes, members);
  return {latency_ * volume.steps, volume.bytes, &links_of(call)};
}

void FlatNetworkCost::add_latency(LinkIndex, Time) {
  ensure(false, "links of a flat network have no latency of their own");
}

TransferPlan FlatNetworkCost::point_to_point(int32_t source, int32_t destination, Bytes bytes) {
  auto& links = pair_links_[static_cast<size_t>(source)][destination];
  if (links.empty() && source != destination) {
    links = {static_cast<LinkIndex>(2 * source), static_cast<LinkIndex>(2 * destination + 1)};
  }
  return {latency_, bytes, &links};
}

TransferPlan FlatNetworkCost::copy(int32_t, DeviceId from, DeviceId to, Bytes) {
  return {from == to ? Time{} : latency_, {}, nullptr};
}

}  // namespace lockstep::sim
