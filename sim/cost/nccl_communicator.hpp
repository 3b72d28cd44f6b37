#pragma once

#include <cstdint>

#include "sim/cost/nccl_constants.hpp"

namespace lockstep::sim {

/// Channels that NCCL's search found for one algorithm, and their rates in GB/s.
struct NcclGraph {
  int channels = 0;  ///< 0: the algorithm is not available
  double intra = 0;  ///< of one channel inside of a node
  double inter = 0;  ///< of one channel between nodes
};

/// The collectives that NCCL's tuner decides. All others are sends and receives.
enum class NcclFunction : uint8_t { broadcast, reduce, all_gather, reduce_scatter, all_reduce };

/// What the tuner knows of a communicator.
struct NcclCommunicator {
  int64_t ranks = 1;
  int64_t nodes = 1;  ///< of one NVLink domain each
  GpuGeneration generation = GpuGeneration::ampere;
  NcclVersion version{};
  Medium intra = Medium::nvlink;  ///< nvlink, or pcie for peer-to-peer and shared memory
  bool has_nvswitch = false;
  bool has_amd_host = false;
  bool has_x86_host = true;
  bool has_sharp = false;                ///< the network reduces (CollNet)
  bool allows_ll128 = false;             ///< stores of 128 bytes stay whole on all paths
  bool same_channels = true;             ///< every ring has one order
  bool tree_meets_network_once = false;  ///< all traffic of a tree's NIC goes through one GPU
  double nic_latency_us = 0;             ///< as the network's plugin reports it
  double network_overhead_us = 1;        ///< per step; 2 on AMD hosts
  NcclGraph ring;
  NcclGraph tree;
  NcclGraph nvls;
  NcclGraph collnet_chain;
  NcclGraph collnet_direct;

  int64_t ranks_per_node() const { return ranks / nodes; }
  /// Place in PerNodes.
  size_t nodes_index() const { return nodes >= 3 ? 2 : static_cast<size_t>(nodes - 1); }
};

}  // namespace lockstep::sim
