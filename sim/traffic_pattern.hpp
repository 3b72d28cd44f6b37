#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/cluster/topology.hpp"
#include "sim/cost.hpp"

namespace lockstep::sim {

/// The links that the messages of one collective algorithm cross. The algorithm cuts its volume
/// into `parts` equal ones that travel at the same time by different ways (NCCL: channels); a link
/// carries weight / parts of the volume.
struct TrafficPattern {
  std::vector<LinkIndex> links;   ///< ascending
  std::vector<uint32_t> weights;  ///< by place in `links`
  int64_t parts = 1;
  Time latency{};                           ///< of the links on the critical path, none but theirs
  std::vector<LinkIndex> uneven{};          ///< TransferPlan::uneven; empty: none
  std::vector<uint32_t> with_columns{};     ///< TransferPlan::with_columns; empty: none
  uint32_t columns = 1;                     ///< TransferPlan::columns
  std::vector<LinkIndex> uneven_columns{};  ///< TransferPlan::uneven_columns; empty: none
};

/// Adds up the routes of messages.
class TrafficCounter {
 public:
  explicit TrafficCounter(const Topology& topology) : topology_(topology) {}
  /// A message that counts `weight` times; gives its latency.
  Time add(DeviceNumber from, DeviceNumber to, uint32_t weight = 1);
  /// Moves what was counted into the pattern.
  void finish(TrafficPattern& pattern);

 private:
  void merge();

  const Topology& topology_;
  std::vector<std::pair<LinkIndex, uint32_t>> uses_;
  size_t merge_at_ = 1 << 20;
};

/// The devices of a communicator as the patterns need them.
struct Members {
  std::span<const DeviceNumber> devices;  ///< by member
  int64_t devices_per_node = 1;
};

/// Each hop carries the volume once; `steps` of them are on the critical path. The order is by node
/// and then by place. Over several nodes there are as many parts as each node has members: part k
/// leaves every node from another device, so that all NICs carry their share (NCCL's channels).
TrafficPattern ring_pattern(const Topology& topology, const Members& members, int64_t steps);

/// The two trees of Sanders, Speck and Traeff (2009) over the nodes, with a chain inside each node,
/// as NCCL's double binary tree: the volume goes up and down again. Parts as in a ring, twice.
TrafficPattern double_tree_pattern(const Topology& topology, const Members& members);

/// A binomial tree down from member `root`: the volume over every edge, one step after the other.
TrafficPattern binomial_pattern(const Topology& topology, const Members& members, size_t root);

/// Every other member sends the volume to member `root`, or gets it from there, in turn.
TrafficPattern linear_pattern(const Topology& topology, const Members& members, size_t root,
                              bool to_root);

/// The volume N - 1 times over every hop of a ring, and then once from every member to `root`: a
/// ring reduce-scatter whose parts are gathered.
TrafficPattern ring_and_gather_pattern(const Topology& topology, const Members& members,
                                       size_t root);

/// Every member sends the volume to every other, in N - 1 rounds.
TrafficPattern pairwise_pattern(const Topology& topology, const Members& members);

/// ceil(log2 N) rounds in which each member signals the one 2^k after it; no volume.
TrafficPattern dissemination_pattern(const Topology& topology, const Members& members);

}  // namespace lockstep::sim
