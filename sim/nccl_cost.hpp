#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/cost/collective_price.hpp"
#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// Which NCCL runs, and what its environment sets.
struct NcclOptions {
  NcclSettings settings{};
  NcclVersion version{};
};

/// Collectives between GPUs as NCCL runs them: alone they take what NcclPricing says, of which the
/// transfer keeps the links busy that a ring or trees cross, so that transfers at the same time
/// share them. Messages and copies are those of `network`.
class NcclCommunicationCost final : public CommunicationCost {
 public:
  /// `network` prices the links of `cluster` and outlives this.
  NcclCommunicationCost(const Cluster& cluster, TopologyCommunicationCost& network,
                        const NcclOptions& options);

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
  void add_latency(LinkIndex link, Time latency) override;

 private:
  const NcclPricing& pricing_of(const CollectiveCall& call);
  TransferPlan planned(const CollectiveCall& call);

  Cluster cluster_;
  TopologyCommunicationCost& network_;
  NcclOptions options_;
  /// The network before a fault added latency; nothing where none did.
  std::optional<TopologyCommunicationCost> healthy_;
  std::map<uint64_t, NcclPricing> pricings_;  ///< by communicator
  /// By communicator, kind, bytes and root, since latencies changed last.
  std::map<std::tuple<uint64_t, OpKind, int64_t, int32_t>, TransferPlan> plans_;
};

}  // namespace lockstep::sim
