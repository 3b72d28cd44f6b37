#include "model/cluster/topology.hpp"

#include <algorithm>
#include <map>

#include "model/cluster/topology_graph.hpp"
#include "model/core/ensure.hpp"

namespace lockstep {

std::string_view name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::ici: return "ici";
    case LinkKind::nvlink: return "nvlink";
    case LinkKind::pcie: return "pcie";
    case LinkKind::socket: return "socket";
    case LinkKind::host_memory: return "host_memory";
    case LinkKind::network: return "network";
  }
  return "?";
}

/// Finds all routes of the two-node graph.
class TopologyBuilder {
 public:
  TopologyBuilder(const Cluster& cluster, Topology& topology)
      : cluster_(cluster),
        nodes_(graph_of(cluster, cluster.nodes > 1 ? 2 : 1)),
        topology_(topology) {}

  void build() {
    topology_.links_ = nodes_.links;
    for (int from = 0; from < cluster_.node.devices; ++from) {
      const VertexId device = nodes_.devices[0][static_cast<size_t>(from)];
      const auto socket = static_cast<size_t>(socket_of(cluster_.node, from));
      topology_.to_host_.push_back(steps(device, nodes_.sockets[0][socket]));
      topology_.from_host_.push_back(steps(nodes_.sockets[0][socket], device));
      for (int to = 0; to < cluster_.node.devices; ++to) {
        topology_.within_.push_back(steps(device, nodes_.devices[0][static_cast<size_t>(to)]));
        if (cluster_.nodes > 1) {
          topology_.between_.push_back(steps(device, nodes_.devices[1][static_cast<size_t>(to)]));
        }
      }
    }
  }

 private:
  Topology::Steps steps(VertexId from, VertexId to) const {
    Topology::Steps result;
    const auto route = fastest_route(nodes_, cluster_.node, from, to);
    // Alone on its node and without a host link, a device has nowhere to copy to.
    const bool to_host = nodes_.graph[from].kind != nodes_.graph[to].kind;
    ensure(route.has_value() || to_host, "every device reaches every other");
    for (const EdgeId& edge : route.value_or(std::vector<EdgeId>())) {
      result.push_back({nodes_.graph[edge].node == 1, nodes_.graph[edge].index});
    }
    return result;
  }

  const Cluster& cluster_;
  NodeGraph nodes_;
  Topology& topology_;
};

Topology::Topology(const Cluster& cluster)
    : nodes_(cluster.nodes), places_(cluster.node.devices), devices_(cluster.devices()) {
  ensure(errors_of(cluster).empty(), "a cluster is checked before it is built");
  TopologyBuilder(cluster, *this).build();
}

const Link& Topology::link(LinkId id) const {
  ensure(id.value < link_count(), "a link of this cluster");
  return links_[id.value % links_.size()];
}

int64_t Topology::node_of(LinkId id) const {
  ensure(id.value < link_count(), "a link of this cluster");
  return static_cast<int64_t>(id.value / links_.size());
}

size_t Topology::pair_index(int64_t from_place, int64_t to_place) const {
  return static_cast<size_t>(from_place * places_ + to_place);
}

std::vector<LinkId> Topology::translated(const Steps& steps, int64_t from_node,
                                         int64_t to_node) const {
  std::vector<LinkId> route;
  for (const Step& step : steps) {
    const int64_t node = step.of_destination ? to_node : from_node;
    route.push_back(
        LinkId{static_cast<uint32_t>(node * static_cast<int64_t>(links_.size()) + step.link)});
  }
  return route;
}

std::vector<LinkId> Topology::route(DeviceNumber from, DeviceNumber to) const {
  ensure(from.value < devices_ && to.value < devices_, "devices of this cluster");
  const int64_t from_node = from.value / places_;
  const int64_t to_node = to.value / places_;
  const size_t pair = pair_index(from.value % places_, to.value % places_);
  return translated(from_node == to_node ? within_[pair] : between_[pair], from_node, to_node);
}

std::vector<LinkId> Topology::route_to_host(DeviceNumber from) const {
  ensure(from.value < devices_, "a device of this cluster");
  return translated(to_host_[static_cast<size_t>(from.value % places_)], from.value / places_, 0);
}

std::vector<LinkId> Topology::route_from_host(DeviceNumber to) const {
  ensure(to.value < devices_, "a device of this cluster");
  return translated(from_host_[static_cast<size_t>(to.value % places_)], to.value / places_, 0);
}

std::vector<LinkUse> Topology::ring(std::span<const DeviceNumber> order) const {
  std::map<LinkId, int64_t> hops;
  for (size_t i = 0; i < order.size() && order.size() > 1; ++i) {
    for (const LinkId link : route(order[i], order[(i + 1) % order.size()])) {
      ++hops[link];
    }
  }
  std::vector<LinkUse> uses;
  for (const auto& [link, count] : hops) {
    uses.push_back({link, count});
  }
  return uses;
}

Time Topology::latency(std::span<const LinkId> route) const {
  Time sum;
  for (const LinkId id : route) {
    sum += link(id).latency;
    const auto added = added_latency_.find(id);
    sum += added == added_latency_.end() ? Time{} : added->second;
  }
  return sum;
}

BytesPerSecond Topology::bottleneck(std::span<const LinkId> route) const {
  BytesPerSecond least = BytesPerSecond::max();
  for (const LinkId id : route) {
    least = std::min(least, link(id).bandwidth);
  }
  return least;
}

BytesPerSecond Topology::bottleneck(std::span<const LinkUse> uses) const {
  BytesPerSecond least = BytesPerSecond::max();
  for (const LinkUse& use : uses) {
    least = std::min(least, link(use.link).bandwidth / use.hops);
  }
  return least;
}

}  // namespace lockstep
