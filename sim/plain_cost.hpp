#pragma once

#include <map>
#include <vector>

#include "sim/cost.hpp"

namespace lockstep::sim {

/// Kernels that say their own time (Kernel::timed) cost that; all others cost nothing.
class ExplicitComputeCost final : public ComputeCost {
 public:
  Time duration(const Op& op, RankId, Time) const override {
    return op.kernel == Kernel::timed ? Time(op.work) : Time{};
  }
};

enum class Algorithm : uint8_t { ring, tree };

/// Plain latency and bandwidth on a flat network: every rank has one link out and one in, all
/// alike.
///   ring: all_reduce 2(N-1) steps, 2(N-1)/N of the bytes over every link; reduce_scatter N-1
///         steps, (N-1)/N; all_gather N-1 steps, N-1 parts; broadcast and reduce N-1 pipelined
///         steps in a chain, all bytes; (Thakur, Rabenseifner, Gropp 2005, section 4)
///   tree: 2 ceil(log2 N) steps for all_reduce, ceil(log2 N) for the others, the whole message over
///         every link in each phase (pipelined)
/// A barrier is an all_reduce of 4 bytes, a group creation an all_gather of 8.
class FlatNetworkCost final : public CommunicationCost {
 public:
  FlatNetworkCost(int32_t ranks, BytesPerSecond bandwidth, Time latency,
                  Algorithm algorithm = Algorithm::ring);

  TransferPlan collective(const CollectiveCall& call) override;
  TransferPlan point_to_point(int32_t source, int32_t destination, Bytes bytes) override;
  TransferPlan copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) override;
  const std::vector<BytesPerSecond>& link_capacities() const override { return capacities_; }
  /// All links are alike: there is none to make slower.
  void add_latency(LinkIndex link, Time latency) override;

 private:
  const std::vector<LinkIndex>& links_of(const CollectiveCall& call);

  Time latency_;
  Algorithm algorithm_;
  std::vector<BytesPerSecond> capacities_;  ///< out of rank r: 2r; into it: 2r + 1
  std::map<uint64_t, std::vector<LinkIndex>> group_links_;
  std::vector<std::map<int32_t, std::vector<LinkIndex>>> pair_links_;
};

/// Steps on the critical path and bytes over every link of a collective of `members`.
struct CollectiveVolume {
  int64_t steps = 0;
  Bytes bytes{};
};
CollectiveVolume ring_volume(OpKind kind, Bytes bytes, int64_t members);
CollectiveVolume tree_volume(OpKind kind, Bytes bytes, int64_t members);

}  // namespace lockstep::sim
