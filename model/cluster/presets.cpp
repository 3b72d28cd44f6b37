#include "model/cluster/presets.hpp"

#include <algorithm>
#include <iterator>

#include "model/cluster/preset_parts.hpp"

namespace lockstep {

namespace {

// Decimal, as makers of drives count.
constexpr Bytes terabytes(int64_t count) { return Bytes(1'000'000'000'000) * count; }

/// Eight GPUs, two sockets, two GPUs a PCIe switch: common to all three DGX generations.
NodeModel dgx(const char* name, DeviceModel device, const char* source) {
  return {.name = name,
          .device = std::move(device),
          .devices = 8,
          .devices_per_pcie_switch = 2,
          .sockets = 2,
          .source = source,
          .assumption = "latencies of links and network"};
}

/// NVLink of DGX-1V: six links of 25 GB/s per GPU in a hybrid cube mesh. The link between sockets
/// is what NCCL's src/graph/topo.h counts for the Xeon E5 v4 (Broadwell).
Cluster dgx_1v(const char* name, DeviceModel device) {
  Cluster cluster{
      .name = name,
      .node = dgx(name, std::move(device),
                  "NVIDIA DGX-1 with Tesla V100 System Architecture white paper, 2017")};
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(150);
  node.nvlinks = 6;
  node.nvlink_pairs = hybrid_cube_mesh();
  node.pcie = pcie_x16(8);
  node.nics = 4;
  node.socket_link = gigabytes_per_second(6);
  node.cpu_cores = 40;
  node.memory = 512_GiB;
  node.disk = gigabytes_per_second(2);
  node.assumption = "latencies of links and network; disk (four SATA drives striped)";
  cluster.network = {gigabits_per_second(100), 1500_ns};
  return cluster;
}

/// With P100: four links of 20 GB/s per GPU, three to the others of its socket and one across.
Cluster dgx_1p() {
  Cluster cluster = dgx_1v("dgx-1p", *device_preset("p100-sxm2-16gb"));
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(80);
  node.nvlinks = 4;
  node.nvlink_pairs = {{0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {1, 2, 1}, {1, 3, 1}, {2, 3, 1},
                       {4, 5, 1}, {4, 6, 1}, {4, 7, 1}, {5, 6, 1}, {5, 7, 1}, {6, 7, 1},
                       {0, 4, 1}, {1, 5, 1}, {2, 6, 1}, {3, 7, 1}};
  node.source =
      "NVIDIA DGX-1 with Tesla P100 System Architecture white paper, 2016, as others quote it";
  return cluster;
}

/// Six NVSwitches; the link between sockets is NCCL's figure for AMD EPYC. Drives of 3.84 TB that
/// write 3.8 GB/s each (Samsung PM1733 data sheet), up to the rate at which all are read.
Cluster dgx_a100(const char* name, DeviceModel device, Bytes memory, DriveModel drives) {
  Cluster cluster{
      .name = name,
      .node = dgx(name, std::move(device), "NVIDIA DGX A100 data sheet, 2020 and 2021")};
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(300);
  node.nvlinks = 12;
  node.pcie = pcie_x16(16);
  node.nics = 8;
  node.socket_link = gigabytes_per_second(16);
  node.cpu = HostCpu::amd;
  node.cpu_cores = 128;
  node.memory = memory;
  node.disk = gigabytes_per_second(25);
  node.nvme = drives;
  node.assumption = "latencies of links and network; rate at which NVMe is written";
  cluster.network = {gigabits_per_second(200), 1500_ns};
  return cluster;
}

/// Four NVSwitches; the link between sockets is NCCL's figure for Sapphire Rapids.
Cluster dgx_hopper(const char* name, DeviceModel device, const char* source) {
  Cluster cluster{.name = name, .node = dgx(name, std::move(device), source)};
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(450);
  node.nvlinks = 18;
  node.pcie = pcie_x16(32);
  node.nics = 8;
  node.socket_link = gigabytes_per_second(22);
  node.cpu_cores = 112;
  node.memory = Bytes(2048) * 1'073'741'824;
  node.disk = gigabytes_per_second(25);
  node.nvme.size = terabytes(30);
  node.assumption = "latencies of links and network; disk and NVMe as in DGX A100";
  cluster.network = {gigabits_per_second(400), 1500_ns};
  return cluster;
}

/// The link between sockets is NCCL's figure for Emerald Rapids.
Cluster dgx_b200() {
  Cluster cluster =
      dgx_hopper("dgx-b200", *device_preset("b200-sxm-180gb"), "NVIDIA DGX B200 data sheet, 2024");
  cluster.node.nvlink = gigabytes_per_second(900);
  cluster.node.socket_link = gigabytes_per_second(40);
  return cluster;
}

/// Eight ConnectX-8 NICs.
Cluster dgx_b300() {
  Cluster cluster = dgx_hopper("dgx-b300", *device_preset("b300-sxm-288gb"),
                               "NVIDIA DGX B300 data sheet, 2025, as others quote it");
  cluster.node.nvlink = gigabytes_per_second(900);
  cluster.node.socket_link = gigabytes_per_second(40);
  cluster.node.cpu_cores = 128;
  cluster.node.assumption =
      "latencies of links and network; disk and NVMe as in DGX A100; the link between sockets as "
      "in DGX B200";
  cluster.network = {gigabits_per_second(800), 1500_ns};
  return cluster;
}

/// A tray: two Grace CPUs and four GPUs. The NVSwitches of a rack join 18 trays.
Cluster gb200_nvl72() {
  Cluster cluster = dgx_hopper("gb200-nvl72", *device_preset("gb200-186gb"),
                               "NVIDIA GB200 NVL72 data sheet, 2024");
  NodeModel& node = cluster.node;
  node.devices = 4;
  node.nvlink = gigabytes_per_second(900);
  node.nvlink_nodes = 18;
  node.nics = 4;
  node.devices_per_pcie_switch = 1;
  node.socket_link = gigabytes_per_second(40);
  node.cpu = HostCpu::arm;
  node.cpu_cores = 144;
  node.memory = 960_GiB;
  node.assumption =
      "latencies of links and network; disk and NVMe as in DGX A100; NICs, and the link between "
      "sockets as in DGX B200";
  return cluster;
}

/// Twelve NVSwitches join sixteen GPUs; the link between sockets is NCCL's figure for Skylake. NVMe
/// as in ZeRO-Infinity (arXiv 2104.07857, figure 2): 28 TB, 1.6 GB/s for each GPU.
Cluster dgx_2() {
  Cluster cluster{
      .name = "dgx-2",
      .node = dgx("dgx-2", *device_preset("v100-sxm2-32gb"), "NVIDIA DGX-2 data sheet, 2019")};
  NodeModel& node = cluster.node;
  node.devices = 16;
  node.nvlink = gigabytes_per_second(150);
  node.nvlinks = 6;
  node.pcie = pcie_x16(8);
  node.nics = 8;
  node.socket_link = gigabytes_per_second(10);
  node.cpu_cores = 48;
  node.memory = 1536_GiB;
  node.disk = gigabytes_per_second(25);
  node.nvme = {terabytes(28), BytesPerSecond(25'600'000'000), BytesPerSecond(25'600'000'000)};
  node.assumption = "latencies of links and network; disk as in DGX A100";
  cluster.network = {gigabits_per_second(100), 1500_ns};
  return cluster;
}

Cluster cpu_cluster() {
  Cluster cluster{.name = "cpu"};
  cluster.node = {.name = "cpu",
                  .device = *device_preset("cpu"),
                  .devices = 8,
                  .pcie = gigabytes_per_second(4),
                  .nics = 1,
                  .cpu_cores = 8,
                  .memory = 128_GiB,
                  .disk = gigabytes_per_second(1),
                  .source = "none",
                  .assumption = "all figures; ranks talk over loopback at 4 GB/s"};
  cluster.network = {gigabits_per_second(10), 25_us};
  cluster.network.fabric = Fabric::tcp;
  return cluster;
}

}  // namespace

std::vector<NvlinkPair> hybrid_cube_mesh() {
  return {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
          {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
}

namespace {

std::vector<Cluster> all_presets() {
  std::vector<Cluster> clusters = {
      dgx_1p(),
      dgx_1v("dgx-1v", *device_preset("v100-sxm2-32gb")),
      dgx_1v("dgx-1v-16gb", *device_preset("v100-sxm2-16gb")),
      dgx_2(),
      dgx_a100("dgx-a100", *device_preset("a100-sxm4-80gb"), 2048_GiB, {terabytes(30), {}, {}}),
      dgx_a100("dgx-a100-40gb", *device_preset("a100-sxm4-40gb"), 1024_GiB,
               {terabytes(15), {}, gigabytes_per_second(15)}),
      dgx_hopper("dgx-h100", *device_preset("h100-sxm5-80gb"), "NVIDIA DGX H100 data sheet, 2023"),
      dgx_hopper("dgx-h200", *device_preset("h200-sxm-141gb"), "NVIDIA DGX H200 data sheet, 2024"),
      dgx_b200(),
      dgx_b300(),
      gb200_nvl72(),
  };
  std::ranges::move(cloud_presets(), std::back_inserter(clusters));
  std::ranges::move(tpu_presets(), std::back_inserter(clusters));
  clusters.push_back(apple_m2_ultra());
  clusters.push_back(cpu_cluster());
  return clusters;
}

}  // namespace

const std::vector<Cluster>& cluster_presets() {
  static const std::vector<Cluster> all = all_presets();
  return all;
}

std::optional<Cluster> cluster_preset(std::string_view name) {
  const std::vector<Cluster>& clusters = cluster_presets();
  const auto found = std::ranges::find(clusters, name, &Cluster::name);
  return found == clusters.end() ? std::nullopt : std::optional(*found);
}

Cluster flat_cluster(int ranks, BytesPerSecond bandwidth, Time latency) {
  Cluster cluster{.name = "flat", .nodes = ranks};
  cluster.node.name = "flat";
  cluster.node.device = *device_preset("cpu");
  cluster.node.pcie = bandwidth;
  cluster.node.nics = 1;
  cluster.node.latencies.host_memory = Time(0);
  cluster.network = {bandwidth, latency};
  return cluster;
}

}  // namespace lockstep
