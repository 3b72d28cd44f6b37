#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cluster/link.hpp"

namespace lockstep {

/// A device of the cluster: node * devices of a node + place in the node. Rank r drives device r
/// where every device is used; else the placement says.
using DeviceNumber = Id<struct DeviceNumberKind>;

/// A link and how many hops of a pattern cross it.
struct LinkUse {
  LinkId link{};
  int64_t hops = 0;
  bool operator==(const LinkUse&) const = default;
};

/// The links of a cluster and the routes over them. A node is GPUs, NVSwitch (or direct NVLinks),
/// PCIe switches, CPU sockets and NICs; nodes meet at leaves and a spine. All nodes are alike, so
/// routes are found once on a graph of two nodes (Boost.Graph) and translated.
///
/// A route is the fastest for a message of 1 MiB that passes links one after the other. A GPU
/// forwards for others only over NVLink and in one hop (NCCL's path class NVB); between nodes a
/// device uses its own NIC, the place-th of its node in turn.
class Topology {
 public:
  /// `cluster` must be free of errors (errors_of).
  explicit Topology(const Cluster& cluster);

  int64_t devices() const { return devices_; }
  int64_t nodes() const { return nodes_; }
  /// Links are numbered 0 .. link_count() - 1, node by node.
  int64_t link_count() const { return nodes_ * static_cast<int64_t>(links_.size()); }
  const Link& link(LinkId id) const;
  int64_t node_of(LinkId id) const;

  /// Links in order of travel; empty from a device to itself. Ensures that both devices exist.
  std::vector<LinkId> route(DeviceNumber from, DeviceNumber to) const;
  /// Between a device and the CPU socket that it hangs on.
  std::vector<LinkId> route_to_host(DeviceNumber from) const;
  std::vector<LinkId> route_from_host(DeviceNumber to) const;

  /// All links that the ring over `order` (each to the next, the last to the first) uses, by id.
  std::vector<LinkUse> ring(std::span<const DeviceNumber> order) const;

  /// A message takes so much longer over this link of this node alone; routes stay as they are.
  void add_latency(LinkId id, Time latency) { added_latency_[id] += latency; }

  /// Sum of latencies; smallest bandwidth, shared by the hops that cross a link at once.
  Time latency(std::span<const LinkId> route) const;
  BytesPerSecond bottleneck(std::span<const LinkId> route) const;
  BytesPerSecond bottleneck(std::span<const LinkUse> uses) const;

 private:
  friend class TopologyBuilder;
  /// A link of the node at one of the two ends of a route.
  struct Step {
    bool of_destination = false;
    uint32_t link = 0;
  };
  using Steps = std::vector<Step>;

  std::vector<LinkId> translated(const Steps& steps, int64_t from_node, int64_t to_node) const;
  size_t pair_index(int64_t from_place, int64_t to_place) const;

  int64_t nodes_ = 0;
  int64_t places_ = 0;
  int64_t devices_ = 0;
  std::vector<Link> links_;     ///< of one node, its links to and from the spine included
  std::vector<Steps> within_;   ///< by place pair
  std::vector<Steps> between_;  ///< by place pair; empty with one node
  std::vector<Steps> to_host_;  ///< by place
  std::vector<Steps> from_host_;
  std::map<LinkId, Time> added_latency_;
};

}  // namespace lockstep
