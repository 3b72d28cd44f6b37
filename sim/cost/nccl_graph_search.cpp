#include "sim/cost/nccl_graph_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace lockstep::sim {

namespace {

using Rates = std::span<const double>;

// GB/s of one channel that NCCL tries, in its order (src/graph/search.cc).
Rates rates_within(GpuGeneration generation) {
  static constexpr auto older =
      std::to_array<double>({40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3});
  static constexpr auto hopper = std::to_array<double>({60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3});
  static constexpr auto blackwell =
      std::to_array<double>({90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18});
  switch (generation) {
    case GpuGeneration::hopper: return hopper;
    case GpuGeneration::blackwell: return blackwell;
    default: return older;
  }
}

Rates rates_between(GpuGeneration generation) {
  static constexpr auto older = std::to_array<double>(
      {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12});
  static constexpr auto hopper = std::to_array<double>(
      {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12});
  static constexpr auto blackwell = std::to_array<double>(
      {96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12});
  switch (generation) {
    case GpuGeneration::hopper: return hopper;
    case GpuGeneration::blackwell: return blackwell;
    default: return older;
  }
}

double gigabytes_of(BytesPerSecond rate) { return static_cast<double>(rate.count()) * 1e-9; }

// What NCCL counts for one NVLink and one direction (src/graph/topo.h), in GB/s.
double nvlink_rate(int compute_capability, NcclVersion version) {
  if (compute_capability >= 100) {
    return 40.1;
  }
  if (compute_capability >= 90) {
    return version < NcclVersion{2, 20} ? 20.0 : 20.6;
  }
  if (compute_capability == 86) {
    return 12;
  }
  const bool is_older = version < NcclVersion{2, 18} && compute_capability == 80;
  return !is_older ? 20.0 : version < NcclVersion{2, 12} ? 21.0 : 22.0;
}

// The data sheet's rate of one NVLink, in GB/s: 25 up to Hopper, 50 after.
double data_sheet_nvlink(int compute_capability) {
  return compute_capability >= 100 ? 50 : compute_capability == 86 ? 14 : 25;
}

/// The rates in GB/s that the search has to divide.
struct Capacities {
  double gpu = 0;     ///< of one GPU to the others of its node
  double widest = 0;  ///< of the fastest path between two GPUs
  double nic = 0;     ///< of one NIC
  int64_t nics = 0;   ///< of a node, as far as its members use them
};

Capacities capacities_of(const Cluster& cluster, const NcclCommunicator& communicator,
                         const NcclSettings& settings) {
  constexpr double pcie_of_data_sheet = 24.0 / 31.507692;  // of x16 at 16 GT/s
  const NodeModel& node = cluster.node;
  const int capability = node.device.compute_capability;
  Capacities capacities;
  if (communicator.intra == Medium::nvlink) {
    capacities.gpu = gigabytes_of(node.nvlink) * nvlink_rate(capability, communicator.version) /
                     data_sheet_nvlink(capability);
    capacities.widest =
        node.nvlink_pairs.empty() ? capacities.gpu : capacities.gpu / std::max(1, node.nvlinks);
  } else {
    capacities.gpu = gigabytes_of(node.pcie) * pcie_of_data_sheet;
    if (goes_through_host(cluster, settings)) {
      // All that the GPUs of a switch exchange crosses its one way to the CPU.
      capacities.gpu /= static_cast<double>(
          std::clamp<int64_t>(node.devices_per_pcie_switch, 1, communicator.ranks_per_node()));
      if (!settings.has_shared_memory && node.nics > 0) {  // then over the NIC and back
        capacities.gpu =
            std::min(capacities.gpu, gigabytes_of(cluster.network.bandwidth) * node.nics);
      }
    }
    const bool crosses_sockets =
        node.sockets > 1 && communicator.ranks_per_node() * node.sockets > node.devices;
    if (crosses_sockets) {
      capacities.gpu = std::min(capacities.gpu, gigabytes_of(node.socket_link));
    }
    capacities.widest = capacities.gpu;
  }
  const double pcie = gigabytes_of(node.pcie) * pcie_of_data_sheet;
  const int64_t local = communicator.ranks_per_node() / node.nvlink_nodes;
  capacities.nic = std::min(gigabytes_of(cluster.network.bandwidth), std::max(pcie, 1.0));
  capacities.nics = std::clamp<int64_t>(
      int64_t{node.nics} * std::max<int64_t>(1, local) / node.devices, 1, std::max(1, node.nics));
  return capacities;
}

constexpr int search_channels_max = 32;

int channels_at(double rate, const Capacities& capacities, bool is_one_node, bool is_alone) {
  constexpr double rounding = 1e-6;
  double channels = search_channels_max;
  if (!is_alone) {
    channels =
        rate <= capacities.widest + rounding ? std::floor(capacities.gpu / rate + rounding) : 0;
  }
  if (!is_one_node) {
    channels = std::min(channels, static_cast<double>(capacities.nics) *
                                      std::floor(capacities.nic / rate + rounding));
  }
  return static_cast<int>(std::min<double>(channels, search_channels_max));
}

// Of a graph with fast channels twice as many of half the rate.
void split_fast_channels(NcclGraph& graph, GpuGeneration generation) {
  constexpr double fast = 25;
  constexpr double fast_of_newer = 50;
  constexpr int many = 4;
  const bool stays =
      generation >= GpuGeneration::hopper && graph.intra < fast_of_newer && graph.channels > many;
  if (graph.intra >= fast && !stays && graph.channels * 2 <= search_channels_max) {
    graph.channels *= 2;
    graph.intra /= 2;
    graph.inter /= 2;
  }
}

NcclGraph search_ring(const NcclCommunicator& communicator, const Capacities& capacities) {
  constexpr double slowest_worth_trying = 0.49;
  const bool is_one_node = communicator.nodes == 1;
  const bool is_alone = communicator.ranks_per_node() == 1;
  NcclGraph best;
  for (const double rate : is_one_node ? rates_within(communicator.generation)
                                       : rates_between(communicator.generation)) {
    if (best.channels > 0 && rate / best.inter <= slowest_worth_trying) {
      break;
    }
    const int channels = channels_at(rate, capacities, is_one_node, is_alone);
    if (channels * rate > best.channels * best.inter) {
      best = {channels, rate, rate};
    }
  }
  if (best.channels == 0) {
    // Links slower than any rate of the list. NCCL's table then has 0.1; the link has its own.
    const double own = is_one_node ? capacities.gpu : capacities.nic;
    best = {1, std::max(0.1, own), std::max(0.1, own)};
  }
  split_fast_channels(best, communicator.generation);
  return best;
}

// Trees over two nodes may run faster inside of them, up to twice.
NcclGraph search_tree(const NcclCommunicator& communicator, const Capacities& capacities,
                      const NcclGraph& ring) {
  NcclGraph tree = ring;
  const auto local = static_cast<double>(communicator.ranks_per_node());
  if (communicator.nodes == 1) {
    return tree;
  }
  const Rates rates = rates_between(communicator.generation);
  const double limit = local > 1 ? capacities.gpu * local / (local - 1) : 2 * ring.inter;
  for (size_t place = rates.size(); place-- > 0;) {
    const double rate = rates[place];
    const bool fits = rate * tree.channels <= limit && rate <= capacities.widest;
    if (rate > tree.intra && tree.intra < 2 * tree.inter && (local == 1 || fits)) {
      tree.intra = rate;
    }
  }
  return tree;
}

// One channel for each GPU of a node, whose switches add up.
NcclGraph search_nvls(const NcclCommunicator& communicator, const Capacities& capacities) {
  const auto heads = static_cast<int>(communicator.ranks_per_node());
  const bool is_one_node = communicator.nodes == 1;
  const int channels =
      is_one_node ? heads : static_cast<int>(std::min<int64_t>(heads, capacities.nics));
  NcclGraph graph{channels, 0, 0};
  for (const double rate : is_one_node ? rates_within(communicator.generation)
                                       : rates_between(communicator.generation)) {
    if (graph.intra == 0 && rate * heads <= capacities.gpu) {
      graph.intra = rate;
    }
    if (!is_one_node && graph.inter == 0 && rate <= capacities.nic) {
      graph.inter = rate;
    }
  }
  return graph;
}

}  // namespace

bool has_gpu_direct(const Cluster& cluster, const NcclSettings& settings) {
  const bool is_rdma = cluster.network.fabric != Fabric::tcp;
  return settings.has_infiniband && is_rdma && cluster.node.nvlink > BytesPerSecond{};
}

bool goes_through_host(const Cluster& cluster, const NcclSettings& settings) {
  const NodeModel& node = cluster.node;
  const bool has_nvlink = node.nvlink > BytesPerSecond{} && settings.has_peer_to_peer;
  return !has_nvlink && !(node.device.has_peer_to_peer && settings.has_peer_to_peer);
}

NcclCommunicator nccl_communicator(const Cluster& cluster, const NcclMembers& members,
                                   const NcclSettings& settings, NcclVersion version) {
  const NodeModel& node = cluster.node;
  NcclCommunicator communicator;
  communicator.ranks = members.ranks;
  communicator.nodes = (members.nodes + node.nvlink_nodes - 1) / node.nvlink_nodes;
  communicator.generation = generation_of(node.device.compute_capability);
  communicator.version = version;
  const bool has_nvlink = node.nvlink > BytesPerSecond{} && settings.has_peer_to_peer;
  communicator.intra = has_nvlink ? Medium::nvlink : Medium::pcie;
  communicator.has_nvswitch = has_nvlink && node.nvlink_pairs.empty() && node.nvlinks > 0;
  communicator.has_amd_host = node.cpu == HostCpu::amd;
  communicator.has_x86_host = node.cpu != HostCpu::arm;
  communicator.has_sharp = settings.has_collnet && cluster.network.fabric == Fabric::infiniband;
  communicator.allows_ll128 =
      has_nvlink && (communicator.nodes == 1 || has_gpu_direct(cluster, settings));
  communicator.nic_latency_us = seconds(cluster.network.nic_latency) * 1e6;
  communicator.network_overhead_us =
      settings.network_overhead_us.value_or(communicator.has_amd_host ? 2.0 : 1.0);
  const Capacities capacities = capacities_of(cluster, communicator, settings);
  communicator.ring = search_ring(communicator, capacities);
  communicator.tree = search_tree(communicator, capacities, communicator.ring);
  if (communicator.has_nvswitch && settings.has_nvls &&
      communicator.generation >= GpuGeneration::hopper && version >= NcclVersion{2, 17}) {
    communicator.nvls = search_nvls(communicator, capacities);
  }
  if (communicator.has_sharp) {
    communicator.collnet_chain = communicator.ring;
    communicator.collnet_direct = communicator.ring;
  }
  return communicator;
}

}  // namespace lockstep::sim
