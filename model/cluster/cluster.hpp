#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster/device.hpp"
#include "model/cluster/fabric.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// Direct NVLinks between two GPUs of a node without NVSwitch.
struct NvlinkPair {
  int first = 0;
  int second = 0;
  int links = 1;
};

/// Time that one link adds to a message. The defaults are assumed, not measured.
struct LinkLatencies {
  Time nvlink = 350_ns;  ///< GPU to NVSwitch; a direct NVLink counts twice
  Time pcie = 250_ns;    ///< to or from a PCIe switch
  Time socket = 150_ns;
  Time host_memory = 500_ns;  ///< a rank on CPU to its host
  Time drive = 100_us;        ///< a request to local NVMe storage
};

/// The links between TPU chips, which join all chips of a slice: no rank's data pass its host.
struct InterChipLinks {
  BytesPerSecond rate{};  ///< of one link and direction
  int links = 0;          ///< of a chip; 0: there are no such links
  int cores = 1;          ///< of a chip that are devices of their own and share its links
  int dimensions = 2;     ///< of the mesh
  int ring_from = 0;      ///< chips along an edge of the mesh from which on its ends are joined
  Time hop{};             ///< from a chip to the next
};

/// Local NVMe storage of a node, which its ranks share.
struct DriveModel {
  Bytes size{};            ///< 0: not known
  BytesPerSecond read{};   ///< 0: as NodeModel::disk
  BytesPerSecond write{};  ///< 0: as NodeModel::disk
};

/// The maker of a host's CPUs, on which NCCL's choices depend.
enum class HostCpu : uint8_t { intel, amd, arm };

/// Description of every node of a cluster. Every rate is for one direction.
struct NodeModel {
  std::string name{};
  DeviceModel device{};
  int devices = 1;
  /// Rate of one GPU over all of its links; 0: none.
  BytesPerSecond nvlink{};
  /// NVLinks of one GPU; one link carries nvlink / nvlinks.
  int nvlinks = 0;
  /// Empty: all GPUs of the node meet at NVSwitches, which have no limit of their own.
  std::vector<NvlinkPair> nvlink_pairs{};
  /// Nodes whose GPUs meet at the same NVSwitches (GB200 NVL72: 18).
  int nvlink_nodes = 1;
  /// Of TPUs: chips of all nodes are one slice.
  InterChipLinks chip_links{};
  /// Rate of one device; for ranks on CPU, the rate through host memory.
  BytesPerSecond pcie{};
  /// GPUs that share one PCIe switch and its uplink to the CPU.
  int devices_per_pcie_switch = 1;
  int nics = 0;
  int sockets = 1;
  BytesPerSecond socket_link{};
  LinkLatencies latencies{};
  HostCpu cpu = HostCpu::intel;
  int cpu_cores = 1;
  Bytes memory{};
  BytesPerSecond disk{};
  DriveModel nvme{};
  std::string source{};
  std::string assumption{};
};

/// The network between nodes: each node's NICs meet at its leaf, all leaves at one spine.
struct NetworkModel {
  BytesPerSecond bandwidth{};  ///< of one NIC
  Time latency{};              ///< from NIC to NIC
  /// NIC bandwidth of a node over its bandwidth to the spine; 1 = non-blocking.
  double oversubscription = 1;
  Fabric fabric = Fabric::infiniband;
  /// What the network's plugin reports to NCCL for each message; InfiniBand and sockets report 0.
  Time nic_latency{};
  /// Threads and sockets of each that NCCL gives a connection over TCP by the vendor of the NIC.
  int socket_threads = 1;
  int sockets_per_thread = 1;
};

/// Nodes that are all alike. A device is numbered through the cluster: node * devices + place.
struct Cluster {
  std::string name{};
  NodeModel node{};
  int nodes = 1;
  NetworkModel network{};
  /// GPUs of each node that others hold (exclusive mode), by place.
  std::vector<int> occupied{};

  int64_t devices() const { return int64_t{nodes} * node.devices; }
};

/// An error in a cluster, and its remedy.
struct ClusterError {
  std::string message{};
  std::string remedy{};
};
std::vector<ClusterError> errors_of(const Cluster& cluster);

}  // namespace lockstep
