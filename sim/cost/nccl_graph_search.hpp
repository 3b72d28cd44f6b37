#pragma once

#include <cstdint>

#include "model/cluster/cluster.hpp"
#include "sim/cost/nccl_settings.hpp"

namespace lockstep::sim {

/// Which GPUs of a cluster form a communicator.
struct NcclMembers {
  int64_t ranks = 1;
  int64_t nodes = 1;  ///< hosts that have a member
};

/// What NCCL finds on this cluster: media, channels and their rates. NCCL's search walks all orders
/// of GPUs and NICs (src/graph/search.cc); here each rate of its list is tried, and as many
/// channels counted as the links of a GPU and the NICs of a node carry at that rate. The best total
/// wins, the first of equals.
NcclCommunicator nccl_communicator(const Cluster& cluster, const NcclMembers& members,
                                   const NcclSettings& settings, NcclVersion version);

/// Whether the GPUs of one node exchange data through memory of the host.
bool goes_through_host(const Cluster& cluster, const NcclSettings& settings);

/// Whether NICs reach the memory of GPUs. Assumed of machines with NVLink alone: elsewhere GPU and
/// NIC hang on different PCIe switches, for which NCCL does not use GPUDirect (beyond PXB).
bool has_gpu_direct(const Cluster& cluster, const NcclSettings& settings);

}  // namespace lockstep::sim
