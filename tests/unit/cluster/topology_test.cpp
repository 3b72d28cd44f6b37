#include "model/cluster/topology.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "model/cluster/presets.hpp"

using namespace lockstep;

namespace topology_test {

namespace {

Cluster nodes_of(std::string_view preset, int nodes) {
  Cluster cluster = cluster_preset(preset).value();
  cluster.nodes = nodes;
  REQUIRE(errors_of(cluster).empty());
  return cluster;
}

std::vector<LinkKind> kinds(const Topology& topology, const std::vector<LinkId>& route) {
  std::vector<LinkKind> result;
  for (const LinkId link : route) {
    result.push_back(topology.link(link).kind);
  }
  return result;
}

std::vector<DeviceNumber> in_order(uint32_t devices) {
  std::vector<DeviceNumber> order;
  for (uint32_t device = 0; device < devices; ++device) {
    order.push_back(DeviceNumber{device});
  }
  return order;
}

constexpr DeviceNumber device(uint32_t number) { return DeviceNumber{number}; }

}  // namespace

TEST_CASE("two GPUs of a DGX H100 meet at the NVSwitch") {
  const Topology topology(nodes_of("dgx-h100", 1));
  const auto route = topology.route(device(0), device(5));
  CHECK(kinds(topology, route) == std::vector{LinkKind::nvlink, LinkKind::nvlink});
  CHECK(topology.bottleneck(route) == 450_GBps);
  CHECK(topology.latency(route) == LinkLatencies{}.nvlink * 2);
  CHECK(topology.route(device(3), device(3)).empty());
}

TEST_CASE("each direction has links of its own") {
  const Topology topology(nodes_of("dgx-a100", 1));
  const auto there = topology.route(device(0), device(1));
  const auto back = topology.route(device(1), device(0));
  for (const LinkId link : there) {
    CHECK(std::find(back.begin(), back.end(), link) == back.end());
  }
}

TEST_CASE("every GPU of the hybrid cube mesh has six NVLinks") {
  const NodeModel node = cluster_preset("dgx-1v")->node;
  std::vector<int> links(8, 0);
  for (const NvlinkPair& pair : node.nvlink_pairs) {
    links.at(static_cast<size_t>(pair.first)) += pair.links;
    links.at(static_cast<size_t>(pair.second)) += pair.links;
  }
  CHECK(links == std::vector<int>(8, 6));
}

TEST_CASE("the cube mesh routes over two NVLinks before it takes the host") {
  const Topology topology(nodes_of("dgx-1v", 1));
  CHECK(topology.bottleneck(topology.route(device(0), device(3))) == 50_GBps);  // two links
  CHECK(topology.bottleneck(topology.route(device(0), device(1))) == 25_GBps);  // one
  const auto corner = topology.route(device(0), device(7));  // by GPU 4: two links on each side
  CHECK(kinds(topology, corner) == std::vector{LinkKind::nvlink, LinkKind::nvlink});
  CHECK(topology.bottleneck(corner) == 50_GBps);
}

TEST_CASE("the known ring of the cube mesh runs at two links but for its single ones") {
  // 0-3-2-1-5-6-7-4 uses only doubled edges of the mesh.
  const Topology topology(nodes_of("dgx-1v", 1));
  std::vector<DeviceNumber> order;
  for (const uint32_t number : {0u, 3u, 2u, 1u, 5u, 6u, 7u, 4u}) {
    order.push_back(device(number));
  }
  const auto uses = topology.ring(order);
  CHECK(uses.size() == 8);
  CHECK(topology.bottleneck(uses) == 50_GBps);
}

TEST_CASE("nodes are joined by each GPU's own NIC") {
  const Topology topology(nodes_of("dgx-h100", 4));
  const auto route = topology.route(device(2 * 8 + 3), device(3 * 8 + 5));
  CHECK(kinds(topology, route) == std::vector{LinkKind::pcie, LinkKind::pcie, LinkKind::network,
                                              LinkKind::network, LinkKind::network,
                                              LinkKind::network, LinkKind::pcie, LinkKind::pcie});
  CHECK(topology.bottleneck(route) == 50_GBps);
  CHECK(topology.latency(route) == 1500_ns + LinkLatencies{}.pcie * 4);
  for (size_t i = 0; i < route.size(); ++i) {
    CHECK(topology.node_of(route[i]) == (i < 4 ? 2 : 3));
  }
  // Eight GPUs of one node to their partners: eight NICs, nothing shared but leaf and spine.
  std::vector<LinkId> first_hops;
  for (uint32_t place = 0; place < 8; ++place) {
    first_hops.push_back(topology.route(device(place), device(8 + place))[2]);
  }
  std::sort(first_hops.begin(), first_hops.end());
  CHECK(std::unique(first_hops.begin(), first_hops.end()) == first_hops.end());
}

TEST_CASE("a ring in rank order crosses each NVLink once and two NICs per node") {
  const Topology one(nodes_of("dgx-h100", 1));
  CHECK(one.ring(in_order(8)).size() == 16);
  CHECK(one.bottleneck(one.ring(in_order(8))) == 450_GBps);
  const Topology two(nodes_of("dgx-h100", 2));
  CHECK(two.bottleneck(two.ring(in_order(16))) == 50_GBps);
  CHECK(two.ring(std::vector{device(4)}).empty());
}

TEST_CASE("hops that cross an oversubscribed leaf at once share it") {
  Cluster cluster = nodes_of("dgx-h100", 2);
  cluster.network.oversubscription = 4;
  const Topology topology(cluster);
  std::vector<DeviceNumber> alternating;
  for (uint32_t place = 0; place < 8; ++place) {
    alternating.push_back(device(place));
    alternating.push_back(device(8 + place));
  }
  // The leaf's way up carries 8 x 50 / 4 = 100 GB/s for 8 hops.
  CHECK(topology.bottleneck(topology.ring(alternating)) == BytesPerSecond(12'500'000'000));
}

TEST_CASE("without NVLink GPUs talk over PCIe, across sockets over their link") {
  Cluster cluster = nodes_of("dgx-a100", 1);
  cluster.node.nvlink = BytesPerSecond(0);
  const Topology topology(cluster);
  CHECK(kinds(topology, topology.route(device(0), device(1))) ==
        std::vector{LinkKind::pcie, LinkKind::pcie});
  CHECK(topology.route(device(0), device(2)).size() == 4);
  CHECK(topology.bottleneck(topology.route(device(0), device(7))) == 16_GBps);
}

TEST_CASE("a device and its host are two PCIe hops apart") {
  const Topology topology(nodes_of("dgx-a100", 2));
  const auto down = topology.route_from_host(device(9));
  CHECK(kinds(topology, down) == std::vector{LinkKind::pcie, LinkKind::pcie});
  CHECK(topology.node_of(down[0]) == 1);
  // Gen4 x16: 16 GT/s, 16 lanes, 128b/130b.
  CHECK(topology.bottleneck(down).count() == 31'507'692'307);
  CHECK(topology.route_to_host(device(9)) != down);
}

TEST_CASE("a flat network is one bandwidth and one latency between any two ranks") {
  const Topology topology(flat_cluster(5, 25_GBps, 3_us));
  CHECK(topology.devices() == 5);
  for (uint32_t from = 0; from < 5; ++from) {
    for (uint32_t to = 0; to < 5; ++to) {
      if (from != to) {
        const auto route = topology.route(device(from), device(to));
        CHECK(topology.latency(route) == 3_us);
        CHECK(topology.bottleneck(route) == 25_GBps);
      }
    }
  }
  CHECK(topology.bottleneck(topology.ring(in_order(5))) == 25_GBps);
}

TEST_CASE("routes of a hundred thousand GPUs need no graph of their size") {
  const Topology topology(nodes_of("dgx-h100", 12'500));
  const auto route = topology.route(device(0), device(99'999));
  CHECK(topology.node_of(route.back()) == 12'499);
  CHECK(topology.bottleneck(topology.ring(in_order(100'000))) == 50_GBps);
}

TEST_CASE("impossible clusters say what to change") {
  Cluster cluster = cluster_preset("dgx-h100").value();
  CHECK(errors_of(cluster).empty());
  cluster.occupied = {8};
  CHECK(errors_of(cluster).at(0).message == "occupied GPU 8 does not exist");
  cluster.occupied.clear();
  cluster.nodes = 2;
  cluster.node.nics = 0;
  CHECK(errors_of(cluster).at(0).message == "several nodes without a NIC");
  cluster.node.nics = 8;
  cluster.network.oversubscription = 0.5;
  CHECK(errors_of(cluster).size() == 1);
}

TEST_CASE("a preset with fewer GPUs drops the NVLinks of those that are gone") {
  Cluster cluster = cluster_preset("dgx-1v").value();
  cluster.node.devices = 4;
  REQUIRE(errors_of(cluster).empty());
  const Topology topology(cluster);
  CHECK(topology.bottleneck(topology.route(device(0), device(3))) == 50_GBps);
}

}  // namespace topology_test
