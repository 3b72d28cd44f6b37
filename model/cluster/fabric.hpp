#pragma once

#include <cstdint>

namespace lockstep {

/// How NICs carry data between nodes: InfiniBand, RDMA over Ethernet, Amazon's EFA, Google's
/// GPUDirect-TCPX and TCPXO, or plain sockets.
enum class Fabric : uint8_t { infiniband, roce, efa, tcpx, tcpxo, tcp };

}  // namespace lockstep
