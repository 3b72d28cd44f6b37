#pragma once

#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// How long a collective takes over the links between TPU chips, where nothing else is on them.
struct SliceTime {
  Time hops{};      ///< from chip to chip, on the way of one byte
  Time transfer{};  ///< of the bytes that every link carries
};

/// Rings over the chips of a slice, in both directions of each link at once: a ring of n members
/// moves 2 (n - 1) / n of the data for an all_reduce over its slowest link, half of it in each
/// direction (Patarasuk and Yuan 2009). A mesh whose edges are joined has a ring in each of its
/// dimensions, and all of them carry a part (Jouppi et al. 2020 and 2023).
SliceTime slice_time(const InterChipLinks& links, OpKind kind, Bytes bytes, int64_t members);

/// Chips along the edges of a slice of so many: near to a square or a cube, as the shapes that
/// Google Cloud has. One edge where the number is no power of two.
std::vector<int64_t> slice_shape(int64_t chips, int dimensions);

/// Collectives between TPU chips, by slice_time. XLA's own overhead is not modelled.
class IciCommunicationCost final : public CommunicationCost {
 public:
  /// `network` prices the links of the same cluster and outlives this.
  IciCommunicationCost(const InterChipLinks& links, TopologyCommunicationCost& network)
      : links_(links), network_(network) {}

  TransferPlan collective(const CollectiveCall& call) override;
  TransferPlan point_to_point(int32_t source, int32_t destination, Bytes bytes) override {
    return network_.point_to_point(source, destination, bytes);
  }
  TransferPlan copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) override {
    return network_.copy(rank, from, to, bytes);
  }
  const std::vector<BytesPerSecond>& link_capacities() const override {
    return network_.link_capacities();
  }
  void add_latency(LinkIndex link, Time latency) override { network_.add_latency(link, latency); }

 private:
  InterChipLinks links_;
  TopologyCommunicationCost& network_;
};

}  // namespace lockstep::sim
