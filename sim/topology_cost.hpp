#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cluster/topology.hpp"
#include "model/core/ranks_of_nodes.hpp"
#include "sim/alike_nodes.hpp"
#include "sim/cost.hpp"
#include "sim/traffic_pattern.hpp"

namespace lockstep::sim {

/// Which devices the ranks of a run drive.
struct Placement {
  int32_t devices_per_rank = 1;
  std::vector<DeviceNumber> devices;  ///< of rank 0, then of rank 1, ..

  DeviceNumber device(int32_t rank, size_t number = 0) const {
    return devices[static_cast<size_t>(rank) * static_cast<size_t>(devices_per_rank) + number];
  }
};

/// Ranks in order over the nodes and, in each, over the devices that nobody else occupies.
/// `ranks_per_node` 0: as many as fit; `ranks_of_nodes`: where nodes differ. Fewer devices than
/// needed: says so.
struct PlacementResult {
  Placement placement;
  std::vector<ClusterError> errors;
};
PlacementResult place_ranks(const Cluster& cluster, int32_t world_size, int32_t ranks_per_node,
                            int32_t devices_per_rank, const RanksOfNodes& ranks_of_nodes = {});

/// Of which ranks one runs for all.
struct RunningRanks {
  std::shared_ptr<const RankClasses> classes{};  ///< null: every rank runs
  bool folds_links = true;  ///< links of nodes that are alike are one link, where that can be
};

/// The collective algorithms whose cost is predicted.
enum class CollectiveAlgorithms : uint8_t {
  ring,  ///< every reduction, gather and broadcast is a (pipelined) ring
  tree,  ///< as ring, but all_reduce and barrier over double binary trees
  nccl,  ///< as ring, or all_reduce by trees where that is sooner over, were it alone
  xla,   ///< as ring; between TPU chips IciCommunicationCost prices them
  gloo,  ///< ring all_reduce, all_gather and reduce; binomial broadcast; dissemination barrier
};

/// Communication over the links of a cluster, by their latency and bandwidth: no cost of the
/// library's own (launch, protocol, copies through host memory).
///   ring: all_reduce moves 2(N-1)/N of the bytes over every hop in 2(N-1) steps, reduce_scatter
///     (N-1)/N in N-1, all_gather N-1 parts, broadcast and reduce all bytes
///     (Thakur, Rabenseifner, Gropp 2005); double trees: all bytes up and down in 2 depths
///   all_to_all: 1/N of the bytes between every pair, in N-1 rounds; gather, scatter: every part to
///     or from the root, in turn
///   gloo (facebookincubator/gloo): broadcast.cc is a binomial tree without a pipeline, reduce.cc a
///     ring reduce-scatter and a gather, barrier.cc a dissemination
/// Latency is that of the links on the critical path. A barrier without an own algorithm is an
/// all_reduce of 4 bytes, a group creation an all_gather of 8. A link that several messages of one
/// collective cross carries all of them (TransferPlan::weights).
class TopologyCommunicationCost final : public CommunicationCost {
 public:
  /// `cluster` is free of errors; `host` is the memory that host-side copies go through.
  TopologyCommunicationCost(const Cluster& cluster, Placement placement,
                            CollectiveAlgorithms algorithms, DeviceModel host,
                            const RunningRanks& running = {});

  TransferPlan collective(const CollectiveCall& call) override;
  TransferPlan point_to_point(int32_t source, int32_t destination, Bytes bytes) override;
  /// Over the links between two places; within one memory, a read and a write of all bytes. Of the
  /// drive: at its rate, which the ranks of a node share.
  TransferPlan copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) override;
  const std::vector<BytesPerSecond>& link_capacities() const override { return capacities_; }
  void add_latency(LinkIndex link, Time latency) override;
  /// By which its capacity is known here. Nothing is exact any more where it is one of several
  /// links that stand for each other.
  LinkIndex number_of(LinkId link);
  /// False once a transfer crossed some links of nodes that are alike, and not the others: then no
  /// price is right.
  bool is_exact() const { return is_exact_; }
  /// False once columns that do the same were found not to cross alike links.
  bool are_columns_alike() const { return are_columns_alike_; }

  /// Over the links of a ring, or of double binary trees, whichever NCCL would take. At least two
  /// members; trees are for all_reduce and barrier.
  TransferPlan over_rings(const CollectiveCall& call) { return plan(call, ring_choice(call)); }
  TransferPlan over_trees(const CollectiveCall& call);
  const Topology& topology() const { return topology_; }
  const Placement& placement() const { return placement_; }
  int64_t devices_per_node() const { return devices_per_node_; }
  int64_t links_per_node() const { return topology_.link_count() / topology_.nodes(); }

 private:
  enum class Shape : uint8_t {
    ring_once,   ///< N - 1 steps
    ring_twice,  ///< 2 (N - 1) steps
    double_tree,
    binomial,
    to_root,
    from_root,
    reduce_to_root,  ///< Gloo's
    pairwise,
    dissemination,
  };
  /// The algorithm of one call and what each part of its pattern's volume is.
  struct Choice {
    Shape shape = Shape::ring_once;
    Bytes volume{};  ///< before it is cut into the pattern's parts
  };
  Choice ring_choice(const CollectiveCall& call) const;
  Choice gloo_choice(const CollectiveCall& call) const;
  const TrafficPattern& pattern(const CollectiveCall& call, Shape shape);
  TrafficPattern make_pattern(const CollectiveCall& call, Shape shape);
  TrafficPattern pattern_between(std::span<const int32_t> ranks, int32_t root_rank, Shape shape);
  TransferPlan plan(const CollectiveCall& call, const Choice& choice);
  Time time_alone(const TransferPlan& plan) const;
  /// Of a message: each link counts once.
  using Route = TrafficPattern;
  void add_drives(const NodeModel& node, int64_t nodes);
  std::optional<TrafficPattern> pattern_of_alike(const CollectiveCall& call, Shape shape);
  template <class PatternOf>
  void note_columns(std::span<const int32_t> members, TrafficPattern& pattern,
                    const PatternOf& pattern_of);
  /// `ranks`: those that drive the devices; empty: it is one.
  const Route& route_between(DeviceNumber from, DeviceNumber to, std::span<const int32_t> ranks);
  static TransferPlan plan_over(const TrafficPattern& traffic, Bytes volume);
  Route route_to_drive(int32_t rank, bool writes);
  TransferPlan with_drive(int32_t rank, bool writes, Bytes bytes);
  Route route_of(const std::vector<LinkId>& links);

  Topology topology_;
  Placement placement_;
  CollectiveAlgorithms algorithms_;
  DeviceModel device_;
  DeviceModel host_;
  int64_t devices_per_node_;
  std::shared_ptr<const RankClasses> classes_;
  std::optional<AlikeNodes> alike_;  ///< nothing: links are numbered as in the topology
  bool is_exact_ = true;
  bool are_columns_alike_ = true;
  std::vector<BytesPerSecond> capacities_;
  /// How often latencies have changed. What was found before is kept: plans in progress hold on to
  /// its links.
  uint32_t latencies_ = 0;
  /// By change, communicator, shape and, where the shape has one, root. Addresses stay.
  std::map<std::tuple<uint32_t, uint64_t, Shape, int32_t>, TrafficPattern> patterns_;
  /// By change, between devices.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Route> routes_;
  /// By node, or class of them, of reading and of writing its drive: each is a link behind those of
  /// the topology.
  std::map<std::pair<int64_t, bool>, LinkIndex> drives_;
  std::map<std::pair<int32_t, bool>, Route> drive_routes_;  ///< by rank and whether it writes
  Time drive_latency_{};
  /// By change, of a device; true: to the host.
  std::map<std::tuple<uint32_t, uint32_t, bool>, Route> host_routes_;
};

}  // namespace lockstep::sim
