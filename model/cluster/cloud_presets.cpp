// Machines of clouds. Their pages count vCPUs; where two vCPUs are one core, cores are half of
// them. The rate between sockets is what NCCL's src/graph/topo.h counts for that CPU.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "model/cluster/preset_parts.hpp"

namespace lockstep {

namespace {

// GB/s, by NCCL.
constexpr int64_t broadwell = 6;
constexpr int64_t skylake = 10;  // and Cascade Lake
constexpr int64_t sapphire_rapids = 22;
constexpr int64_t epyc = 16;

/// What a cloud's page says of a machine, beside its GPUs.
struct Host {
  int cores = 1;
  Bytes memory{};
  int64_t disk_gigabytes_per_second = 1;
  int64_t pcie_gigatransfers = 8;
  int64_t socket_link = skylake;
  int nics = 1;
  int64_t nic_gigabits_per_second = 100;
  Time network_latency{};
};

// Ethernet of clouds (EFA, gVNIC) is slower to start than InfiniBand.
constexpr Time ethernet = 15_us;
constexpr Time infiniband = 1500_ns;

// Machines whose cores, memory and network were read off the source when they were entered.
constexpr auto compared = std::to_array<std::string_view>(
    {"g4dn.12xlarge", "g5.xlarge", "g5.12xlarge", "g5.48xlarge", "nd96asr-v4", "nd96isr-h100-v5"});

std::string assumption_of(std::string_view name) {
  std::string text = "latencies of links and network; disk; PCIe switches and sockets";
  if (std::ranges::find(compared, name) == compared.end()) {
    text += "; cores, memory and network, which were not compared with the source";
  }
  return text;
}

Cluster machine(const char* name, const char* device, int devices, const Host& host,
                const char* source) {
  Cluster cluster{.name = name};
  cluster.node = {.name = name,
                  .device = *device_preset(device),
                  .devices = devices,
                  .pcie = pcie_x16(host.pcie_gigatransfers),
                  .devices_per_pcie_switch = devices >= 8 ? 2 : 1,
                  .nics = host.nics,
                  .sockets = devices >= 8 ? 2 : 1,
                  .socket_link = gigabytes_per_second(host.socket_link),
                  .cpu = host.socket_link == epyc ? HostCpu::amd : HostCpu::intel,
                  .cpu_cores = host.cores,
                  .memory = host.memory,
                  .disk = gigabytes_per_second(host.disk_gigabytes_per_second),
                  .source = source,
                  .assumption = assumption_of(name)};
  cluster.network = {gigabits_per_second(host.nic_gigabits_per_second), host.network_latency};
  return cluster;
}

Cluster with_nvswitch(Cluster cluster, int64_t gigabytes, int links) {
  cluster.node.nvlink = gigabytes_per_second(gigabytes);
  cluster.node.nvlinks = links;
  return cluster;
}

/// NVLinks as in DGX-1V.
Cluster with_cube_mesh(Cluster cluster) {
  cluster.node.nvlink_pairs = hybrid_cube_mesh();
  return with_nvswitch(std::move(cluster), 150, 6);
}

/// What aws-ofi-nccl (src/platform-aws.cpp) reports to NCCL for a message over EFA.
Time efa_latency(std::string_view name) {
  if (name.starts_with("p3dn")) {
    return 150_us;
  }
  return name.starts_with("p5en") ? 35_us : 75_us;
}

/// EFA begins with 100 Gb/s; below there is Ethernet alone.
void add_amazon(std::vector<Cluster>& all) {
  constexpr const char* source = "Amazon EC2 accelerated computing instances, 2024";
  const auto add = [&](Cluster cluster) {
    const bool has_efa = cluster.network.bandwidth >= gigabits_per_second(100);
    cluster.network.fabric = has_efa ? Fabric::efa : Fabric::tcp;
    cluster.network.nic_latency = has_efa ? efa_latency(cluster.name) : Time{};
    cluster.network.socket_threads = 2;  // NCCL, src/transport/net_socket.cc
    cluster.network.sockets_per_thread = 8;
    all.push_back(std::move(cluster));
  };
  add(with_cube_mesh(machine("p3.16xlarge", "v100-sxm2-16gb", 8,
                             {32, 488_GiB, 1, 8, broadwell, 1, 25, ethernet}, source)));
  add(with_cube_mesh(machine("p3dn.24xlarge", "v100-sxm2-32gb", 8,
                             {48, 768_GiB, 2, 8, skylake, 1, 100, ethernet}, source)));
  add(with_nvswitch(machine("p4d.24xlarge", "a100-sxm4-40gb", 8,
                            {48, 1152_GiB, 16, 16, skylake, 4, 100, ethernet}, source),
                    300, 12));
  add(with_nvswitch(machine("p4de.24xlarge", "a100-sxm4-80gb", 8,
                            {48, 1152_GiB, 16, 16, skylake, 4, 100, ethernet}, source),
                    300, 12));
  // 3200 Gb/s of EFA, of which each GPU has 400.
  add(with_nvswitch(machine("p5.48xlarge", "h100-sxm5-80gb", 8,
                            {96, 2048_GiB, 16, 32, epyc, 8, 400, ethernet}, source),
                    450, 18));
  add(with_nvswitch(machine("p5e.48xlarge", "h200-sxm-141gb", 8,
                            {96, 2048_GiB, 16, 32, epyc, 8, 400, ethernet}, source),
                    450, 18));
  add(with_nvswitch(machine("p5en.48xlarge", "h200-sxm-141gb", 8,
                            {96, 2048_GiB, 16, 32, sapphire_rapids, 8, 400, ethernet}, source),
                    450, 18));
  add(machine("g4dn.12xlarge", "t4", 4, {24, 192_GiB, 1, 8, skylake, 1, 50, ethernet}, source));
  add(machine("g4dn.metal", "t4", 8, {48, 384_GiB, 2, 8, skylake, 1, 100, ethernet}, source));
  add(machine("g5.xlarge", "a10g", 1, {2, 16_GiB, 1, 16, epyc, 1, 10, ethernet}, source));
  add(machine("g5.12xlarge", "a10g", 4, {24, 192_GiB, 2, 16, epyc, 1, 40, ethernet}, source));
  add(machine("g5.48xlarge", "a10g", 8, {96, 768_GiB, 4, 16, epyc, 1, 100, ethernet}, source));
  add(machine("g6.48xlarge", "l4", 8, {96, 768_GiB, 4, 16, epyc, 1, 100, ethernet}, source));
  add(machine("g6e.48xlarge", "l40s", 8, {96, 1536_GiB, 4, 16, epyc, 4, 100, ethernet}, source));
}

/// Of the NICs of a3, only those that serve GPUs are counted.
void add_google(std::vector<Cluster>& all) {
  constexpr const char* source = "Google Cloud accelerator-optimized machine family, 2024";
  const auto add = [&](Cluster cluster) {
    cluster.network.fabric = cluster.name.starts_with("a3-mega")   ? Fabric::tcpxo
                             : cluster.name.starts_with("a3-high") ? Fabric::tcpx
                                                                   : Fabric::tcp;
    cluster.network.socket_threads = 4;  // NCCL, src/transport/net_socket.cc
    all.push_back(std::move(cluster));
  };
  add(with_nvswitch(machine("a2-highgpu-8g", "a100-sxm4-40gb", 8,
                            {48, 680_GiB, 2, 16, skylake, 1, 100, ethernet}, source),
                    300, 12));
  add(with_nvswitch(machine("a2-ultragpu-8g", "a100-sxm4-80gb", 8,
                            {48, 1360_GiB, 2, 16, skylake, 1, 100, ethernet}, source),
                    300, 12));
  add(with_nvswitch(machine("a3-highgpu-8g", "h100-sxm5-80gb", 8,
                            {104, 1872_GiB, 8, 32, sapphire_rapids, 4, 200, ethernet}, source),
                    450, 18));
  add(with_nvswitch(machine("a3-megagpu-8g", "h100-sxm5-80gb", 8,
                            {104, 1872_GiB, 8, 32, sapphire_rapids, 8, 200, ethernet}, source),
                    450, 18));
}

/// A vCPU is a core there.
void add_azure(std::vector<Cluster>& all) {
  constexpr const char* source = "Azure ND series virtual machines, 2024";
  const auto add = [&](Cluster cluster) { all.push_back(std::move(cluster)); };
  add(with_nvswitch(machine("nd96asr-v4", "a100-sxm4-40gb", 8,
                            {96, 900_GiB, 4, 16, epyc, 8, 200, infiniband}, source),
                    300, 12));
  add(with_nvswitch(machine("nd96amsr-a100-v4", "a100-sxm4-80gb", 8,
                            {96, 1900_GiB, 4, 16, epyc, 8, 200, infiniband}, source),
                    300, 12));
  add(with_nvswitch(machine("nd96isr-h100-v5", "h100-sxm5-80gb", 8,
                            {96, 1900_GiB, 8, 32, sapphire_rapids, 8, 400, infiniband}, source),
                    450, 18));
}

/// Desktop computers of no maker: only their GPUs have a data sheet.
void add_workstations(std::vector<Cluster>& all) {
  const Host host{16, 128_GiB, 5, 16, skylake, 1, 10, 25_us};
  for (Cluster cluster : {machine("workstation-2x3090", "rtx-3090", 2, host, "none"),
                          machine("workstation-4x4090", "rtx-4090", 4, host, "none")}) {
    cluster.node.assumption =
        "all figures but those of the GPU: 16 cores, 128 GiB, PCIe 4.0 x16 without NVLink, "
        "10 Gb/s Ethernet";
    cluster.network.fabric = Fabric::tcp;
    all.push_back(std::move(cluster));
  }
}

}  // namespace

std::vector<Cluster> cloud_presets() {
  std::vector<Cluster> all;
  add_amazon(all);
  add_google(all);
  add_azure(all);
  add_workstations(all);
  return all;
}

}  // namespace lockstep
