#include "model/cluster/topology_graph.hpp"

#include <algorithm>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <cmath>

namespace lockstep {

namespace {

/// Adds the vertices and links of node after node; the k-th link of each node is the same link.
class GraphBuilder {
 public:
  GraphBuilder(const Cluster& cluster, NodeGraph& result)
      : node_(cluster.node), network_(cluster.network), result_(result) {}

  void add_nodes(int nodes) {
    const VertexId spine = add(VertexKind::spine, 0, 0);
    for (int node = 0; node < nodes; ++node) {
      next_index_ = 0;
      current_ = node;
      result_.devices.push_back(add_all(VertexKind::device, node_.devices));
      result_.sockets.push_back(add_all(VertexKind::socket, node_.sockets));
      add_nvlinks();
      add_chip_links(spine);
      const std::vector<VertexId> switches = add_host_links();
      add_network(switches, spine);
    }
  }

 private:
  VertexId add(VertexKind kind, int node, int place) {
    return boost::add_vertex(Vertex{kind, node, place}, result_.graph);
  }
  std::vector<VertexId> add_all(VertexKind kind, int count) {
    std::vector<VertexId> vertices;
    for (int place = 0; place < count; ++place) {
      vertices.push_back(add(kind, current_, place));
    }
    return vertices;
  }
  void connect_one_way(VertexId from, VertexId to, const Link& link) {
    if (link.bandwidth <= BytesPerSecond(0)) {
      return;
    }
    boost::add_edge(from, to, Edge{link, current_, next_index_++}, result_.graph);
    if (current_ == 0) {
      result_.links.push_back(link);
    }
  }
  void connect(VertexId one, VertexId other, const Link& link) {
    connect_one_way(one, other, link);
    connect_one_way(other, one, link);
  }

  void add_nvlinks();
  void add_chip_links(VertexId spine);
  std::vector<VertexId> add_host_links();
  void add_network(const std::vector<VertexId>& switches, VertexId spine);

  const NodeModel& node_;
  const NetworkModel& network_;
  NodeGraph& result_;
  int current_ = 0;
  uint32_t next_index_ = 0;
};

void GraphBuilder::add_nvlinks() {
  const std::vector<VertexId>& devices = result_.devices.back();
  if (node_.nvlink <= BytesPerSecond(0)) {
    return;
  }
  for (const NvlinkPair& pair : node_.nvlink_pairs) {
    if (std::max(pair.first, pair.second) >= node_.devices) {
      continue;  // a GPU that was taken out of the preset
    }
    const BytesPerSecond bandwidth = node_.nvlink * pair.links / node_.nvlinks;
    connect(devices[static_cast<size_t>(pair.first)], devices[static_cast<size_t>(pair.second)],
            {LinkKind::nvlink, bandwidth, node_.latencies.nvlink * 2});
  }
  if (node_.nvlink_pairs.empty() && devices.size() > 1) {
    const VertexId nvswitch = add(VertexKind::nvswitch, current_, 0);
    for (const VertexId device : devices) {
      connect(device, nvswitch, {LinkKind::nvlink, node_.nvlink, node_.latencies.nvlink});
    }
  }
}

/// All chips of a slice meet, whatever their hosts are: how far they are apart in the mesh is a
/// matter of the cost of a collective.
void GraphBuilder::add_chip_links(VertexId spine) {
  const InterChipLinks& links = node_.chip_links;
  if (links.links == 0) {
    return;
  }
  const BytesPerSecond of_chip = links.rate * links.links;
  const VertexId meeting = add(VertexKind::nvswitch, current_, 0);
  for (const VertexId device : result_.devices.back()) {
    connect(device, meeting, {LinkKind::ici, of_chip, links.hop});
  }
  connect(meeting, spine, {LinkKind::ici, of_chip * node_.devices, Time(0)});
}

/// Devices to PCIe switches to sockets, sockets among each other; ranks on CPU reach their socket
/// through memory. Returns the vertex that each device hangs on.
std::vector<VertexId> GraphBuilder::add_host_links() {
  const std::vector<VertexId>& devices = result_.devices.back();
  const std::vector<VertexId>& sockets = result_.sockets.back();
  const Link pcie{LinkKind::pcie, node_.pcie, node_.latencies.pcie};
  const bool is_cpu = !node_.device.is_accelerator();
  std::vector<VertexId> hangs_on;
  for (int place = 0; place < node_.devices; ++place) {
    const VertexId socket = sockets[static_cast<size_t>(socket_of(node_, place))];
    const VertexId device = devices[static_cast<size_t>(place)];
    if (is_cpu) {
      connect(device, socket, {LinkKind::host_memory, node_.pcie, node_.latencies.host_memory});
      hangs_on.push_back(socket);
      continue;
    }
    if (place % node_.devices_per_pcie_switch == 0) {
      hangs_on.push_back(add(VertexKind::pcie_switch, current_, place));
      connect(hangs_on.back(), socket, pcie);
    } else {
      hangs_on.push_back(hangs_on.back());
    }
    connect(device, hangs_on.back(), pcie);
  }
  for (size_t i = 0; i < sockets.size(); ++i) {
    for (size_t j = i + 1; j < sockets.size(); ++j) {
      connect(sockets[i], sockets[j],
              {LinkKind::socket, node_.socket_link, node_.latencies.socket});
    }
  }
  return hangs_on;
}

/// The latency of the network counts once, on the way out of a NIC.
void GraphBuilder::add_network(const std::vector<VertexId>& switches, VertexId spine) {
  if (node_.nics == 0) {
    return;
  }
  const VertexId leaf = add(VertexKind::leaf, current_, 0);
  const std::vector<VertexId> nics = add_all(VertexKind::nic, node_.nics);
  for (size_t i = 0; i < nics.size(); ++i) {
    // Spread over the PCIe switches; a NIC's slot carries what the NIC does, at least.
    const VertexId slot = switches[i * switches.size() / nics.size()];
    const bool is_cpu = !node_.device.is_accelerator();
    connect(slot, nics[i],
            {LinkKind::pcie, std::max(node_.pcie, network_.bandwidth),
             is_cpu ? Time(0) : node_.latencies.pcie});
    connect_one_way(nics[i], leaf, {LinkKind::network, network_.bandwidth, network_.latency});
    connect_one_way(leaf, nics[i], {LinkKind::network, network_.bandwidth, Time(0)});
  }
  const double total = static_cast<double>(network_.bandwidth.count()) * node_.nics;
  const BytesPerSecond uplink(std::llround(total / network_.oversubscription));
  connect(leaf, spine, {LinkKind::network, uplink, Time(0)});
}

/// Which edges a route from `from` to `to` may take.
struct AllowedEdges {
  const TopologyGraph* graph = nullptr;
  const NodeModel* model = nullptr;
  VertexId from = 0;
  VertexId to = 0;

  bool operator()(const EdgeId& edge) const {
    const VertexId source = boost::source(edge, *graph);
    const VertexId target = boost::target(edge, *graph);
    const bool forwards = (*graph)[source].kind == VertexKind::device && source != from;
    if (forwards) {
      return (*graph)[edge].link.kind == LinkKind::nvlink && target == to;
    }
    const bool enters_device = (*graph)[target].kind == VertexKind::device && target != to;
    if (enters_device) {
      return (*graph)[edge].link.kind == LinkKind::nvlink && source == from;
    }
    return is_own_nic(source) && is_own_nic(target);
  }
  bool is_own_nic(VertexId vertex) const {
    const Vertex& place = (*graph)[vertex];
    if (place.kind != VertexKind::nic) {
      return true;
    }
    const Vertex& end = (*graph)[(*graph)[from].node == place.node ? from : to];
    return end.kind != VertexKind::device || nic_of(*model, end.place) == place.place;
  }
};

}  // namespace

int nic_of(const NodeModel& model, int place) {
  return model.nics == 0 ? -1 : place * model.nics / model.devices;
}

int socket_of(const NodeModel& model, int place) { return place * model.sockets / model.devices; }

NodeGraph graph_of(const Cluster& cluster, int nodes) {
  NodeGraph result;
  GraphBuilder(cluster, result).add_nodes(nodes);
  return result;
}

std::optional<std::vector<EdgeId>> fastest_route(const NodeGraph& nodes, const NodeModel& model,
                                                 VertexId from, VertexId to) {
  const TopologyGraph& graph = nodes.graph;
  const boost::filtered_graph usable(graph, AllowedEdges{&graph, &model, from, to});
  const auto weight = boost::make_function_property_map<EdgeId>([&](const EdgeId& edge) {
    return (graph[edge].link.latency + 1_MiB / graph[edge].link.bandwidth).count();
  });
  std::vector<VertexId> before(boost::num_vertices(graph));
  boost::dijkstra_shortest_paths(
      usable, from,
      boost::weight_map(weight).predecessor_map(boost::make_iterator_property_map(
          before.begin(), boost::get(boost::vertex_index, graph))));
  std::vector<EdgeId> route;
  for (VertexId at = to; at != from; at = before[at]) {
    if (before[at] == at) {  // never reached
      return std::nullopt;
    }
    route.push_back(boost::edge(before[at], at, graph).first);
  }
  std::reverse(route.begin(), route.end());
  return route;
}

}  // namespace lockstep
