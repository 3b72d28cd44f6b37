// Channels and rates that NCCL finds on common machines: as its logs show them, or counted by hand
// from the rates of its list, the links of a GPU and the NICs of a node.
#include "sim/cost/nccl_graph_search.hpp"

#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"

using namespace lockstep;
using namespace lockstep::sim;

namespace nccl_graph_search_test {

namespace {

NcclCommunicator found(const char* preset, int nodes, int64_t ranks,
                       const NcclSettings& settings = {}) {
  Cluster cluster = *cluster_preset(preset);
  cluster.nodes = nodes;
  return nccl_communicator(cluster, {ranks, nodes}, settings, {});
}

void check(const NcclGraph& graph, int channels, double intra, double inter) {
  CHECK(graph.channels == channels);
  CHECK(graph.intra == Approx(intra));
  CHECK(graph.inter == Approx(inter));
}

}  // namespace

TEST_CASE("NVSwitch machines: fast channels are split in two") {
  // 12 x 20 = 240 GB/s: 6 channels of 40, as many again of half the rate.
  check(found("dgx-a100", 1, 8).ring, 12, 20, 20);
  // 18 x 20.6 = 370.8: 6 of 60.
  check(found("dgx-h100", 1, 8).ring, 12, 30, 30);
  // 18 x 40.1 = 721.8: 8 of 90.
  check(found("dgx-b200", 1, 8).ring, 16, 45, 45);
  CHECK(found("dgx-a100", 1, 8).intra == Medium::nvlink);
}

TEST_CASE("NVLS has one channel for each GPU, from Hopper on") {
  // 370.8 / 8 = 46.35, and 721.8 / 8 = 90.2.
  check(found("dgx-h100", 1, 8).nvls, 8, 40, 0);
  check(found("dgx-b200", 1, 8).nvls, 8, 90, 0);
  CHECK(found("dgx-a100", 1, 8).nvls.channels == 0);
  NcclSettings without;
  without.has_nvls = false;
  CHECK(found("dgx-h100", 1, 8, without).nvls.channels == 0);
}

TEST_CASE("over nodes the rate is one that NIC and NVLink carry") {
  // A NIC of 25 GB/s carries 24; 8 x 48 would be more than the NVLinks of an H100 carry, 8 x 45
  // not.
  check(found("dgx-a100", 2, 16).ring, 8, 24, 24);
  check(found("dgx-h100", 2, 16).ring, 8, 45, 45);
  check(found("dgx-b200", 2, 16).ring, 8, 48, 48);
  // Four NICs of 12.5 GB/s.
  check(found("dgx-1v", 2, 16).ring, 4, 12, 12);
  check(found("p4d.24xlarge", 2, 16).ring, 4, 12, 12);
  // One GPU of each node has its own NIC alone.
  check(found("dgx-a100", 4, 4).ring, 1, 24, 24);
}

TEST_CASE("several NICs per GPU carry a channel each") {
  Cluster cluster = *cluster_preset("dgx-a100");
  cluster.nodes = 2;
  cluster.node.nics = 16;
  cluster.network.bandwidth = BytesPerSecond(12'500'000'000);
  const NcclCommunicator communicator = nccl_communicator(cluster, {16, 2}, {}, {});
  check(communicator.ring, 16, 12, 12);
}

TEST_CASE("trays in one NVLink domain are one node to NCCL") {
  const NcclCommunicator communicator = found("gb200-nvl72", 2, 8);
  CHECK(communicator.nodes == 1);
  CHECK(communicator.ranks_per_node() == 8);
  CHECK_FALSE(communicator.has_x86_host);
  check(communicator.nvls, 8, 90, 0);
}

TEST_CASE("LL128 is for NVLink, and over nodes for GPUDirect") {
  CHECK(found("dgx-a100", 2, 16).allows_ll128);
  CHECK_FALSE(found("a2-highgpu-8g", 2, 16).allows_ll128);
  CHECK_FALSE(found("workstation-4x4090", 1, 4).allows_ll128);
}

TEST_CASE("GeForce cards meet in memory of the host, others over PCIe") {
  CHECK(goes_through_host(*cluster_preset("workstation-4x4090"), {}));
  CHECK_FALSE(goes_through_host(*cluster_preset("g5.48xlarge"), {}));
  NcclSettings disabled;
  disabled.has_peer_to_peer = false;
  CHECK(goes_through_host(*cluster_preset("dgx-a100"), disabled));
  CHECK(found("dgx-a100", 1, 8, disabled).intra == Medium::pcie);
}

TEST_CASE("hosts and networks have latencies of their own") {
  CHECK(found("dgx-a100", 2, 16).network_overhead_us == 2);  // AMD
  CHECK(found("dgx-h100", 2, 16).network_overhead_us == 1);
  CHECK(found("p4d.24xlarge", 2, 16).nic_latency_us == Approx(75));
  CHECK(found("p5en.48xlarge", 2, 16).nic_latency_us == Approx(35));
}

}  // namespace nccl_graph_search_test
