#pragma once

#include <cstdint>
#include <string_view>

#include "model/core/ids.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// One directed link of a cluster. Both directions of a cable are two links.
using LinkId = Id<struct LinkIdKind>;

enum class LinkKind : uint8_t {
  ici,          ///< between TPU chips
  nvlink,       ///< between GPUs, or a GPU and an NVSwitch
  pcie,         ///< between a device, a PCIe switch and a CPU socket
  socket,       ///< between the CPU sockets of a node
  host_memory,  ///< between ranks on CPU and their host
  network,      ///< between a NIC and the network, or within the network
};
std::string_view name_of(LinkKind kind);

struct Link {
  LinkKind kind = LinkKind::network;
  BytesPerSecond bandwidth{};
  Time latency{};
};

}  // namespace lockstep
