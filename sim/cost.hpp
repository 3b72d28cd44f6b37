#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/core/op.hpp"
#include "model/core/place.hpp"
#include "model/core/position.hpp"

namespace lockstep::sim {

/// How long device work takes.
class ComputeCost {
 public:
  virtual ~ComputeCost() = default;
  /// Duration of a compute operation that starts at `start` on a device of `rank`.
  virtual Time duration(const Op& op, RankId rank, Time start) const = 0;
};

/// Observes the position of ranks and the time on their hosts.
class PositionObserver {
 public:
  virtual ~PositionObserver() = default;
  virtual void reached(RankId rank, const Position& position, Time now) = 0;
};

/// A directed link of the cluster, as a number below link_capacities().size().
using LinkIndex = uint32_t;

/// The demand of a transfer on the network: it moves `volume` over every one of `links` at once, at
/// the rate that max-min fair sharing leaves it, and takes `latency` beside. No links: it shares
/// with nobody and takes `latency` alone. A link that several of its messages cross carries a
/// multiple of the volume, its weight: at a rate r it uses weight * r of that link's capacity.
struct TransferPlan {
  Time latency{};
  Bytes volume{};
  const std::vector<LinkIndex>* links = nullptr;  ///< each once; owned by the cost model
  /// By place in `links`, at least 1; null = all 1. Owned by the cost model.
  const std::vector<uint32_t>* weights = nullptr;
  /// Of links on nodes that run for others that are alike: those that it crosses more or less often
  /// than on these others, ascending; null: none. Owned by the cost model.
  const std::vector<LinkIndex>* uneven = nullptr;
  /// Ranks that are not simulated do as much at the same time, over links of their own.
  bool stands_for_others = false;
  /// Of a column (RankClasses): what the columns for which it stands take of each link at the same
  /// time, itself included, by place in `links`; null: nothing but its own. Owned by the cost
  /// model.
  const std::vector<uint32_t>* with_columns = nullptr;
  uint32_t columns = 1;  ///< for which it stands
  /// Links that it does not cross as it does those of other columns, ascending; null: none. Owned
  /// by the cost model.
  const std::vector<LinkIndex>* uneven_columns = nullptr;
};

struct CollectiveCall {
  OpKind kind = OpKind::barrier;
  Bytes bytes{};  ///< as in Op::bytes
  std::span<const int32_t> members;
  uint64_t communicator = 0;  ///< key, for caches
  int32_t root = 0;           ///< global rank
};

/// The demand of communication on the network. One collective is one fluid job.
class CommunicationCost {
 public:
  virtual ~CommunicationCost() = default;
  virtual TransferPlan collective(const CollectiveCall& call) = 0;
  virtual TransferPlan point_to_point(int32_t source, int32_t destination, Bytes bytes) = 0;
  /// Between two devices of one rank (host_device: the host's memory).
  virtual TransferPlan copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) = 0;
  virtual const std::vector<BytesPerSecond>& link_capacities() const = 0;
  /// Adds this latency to transfers planned from here on over this link; less than zero
  /// takes back what was added.
  virtual void add_latency(LinkIndex link, Time latency) = 0;
};

}  // namespace lockstep::sim
