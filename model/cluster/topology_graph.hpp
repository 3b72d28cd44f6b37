#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <optional>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cluster/link.hpp"

namespace lockstep {

enum class VertexKind : uint8_t { device, nvswitch, pcie_switch, socket, nic, leaf, spine };

struct Vertex {
  VertexKind kind = VertexKind::device;
  int node = 0;
  int place = 0;  ///< number among its kind in the node
};

struct Edge {
  Link link{};
  int node = 0;        ///< the node that the link counts to
  uint32_t index = 0;  ///< number in that node; alike in all nodes
};

using TopologyGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Edge>;
using VertexId = boost::graph_traits<TopologyGraph>::vertex_descriptor;
using EdgeId = boost::graph_traits<TopologyGraph>::edge_descriptor;

/// One or two nodes of a cluster and the vertices that routes begin or end at.
struct NodeGraph {
  TopologyGraph graph{};
  std::vector<std::vector<VertexId>> devices{};  ///< [node][place]
  std::vector<std::vector<VertexId>> sockets{};
  std::vector<Link> links{};  ///< of one node, by index
};
NodeGraph graph_of(const Cluster& cluster, int nodes);

/// The edges from one vertex to another, or nothing if there is no way. See Topology for the rules.
std::optional<std::vector<EdgeId>> fastest_route(const NodeGraph& nodes, const NodeModel& model,
                                                 VertexId from, VertexId to);

/// The NIC that a device uses; -1: none.
int nic_of(const NodeModel& model, int place);
/// The CPU socket that a device hangs on.
int socket_of(const NodeModel& model, int place);

}  // namespace lockstep
