#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

/// NCCL settings (up to 2.29) for a process whose GPU other ranks use too: with a host
/// name of its own no rank looks like a duplicate, and all traffic goes over sockets of this
/// machine. Few thread blocks, so that the waiting kernels of all ranks fit on the GPU.
inline std::vector<std::pair<std::string, std::string>> variables_of_shared_gpu(int32_t rank) {
  return {{"NCCL_HOSTID", "lockstep-rank-" + std::to_string(rank)},
          {"NCCL_P2P_DISABLE", "1"},
          {"NCCL_SHM_DISABLE", "1"},
          {"NCCL_NET", "Socket"},
          {"NCCL_SOCKET_IFNAME", "lo"},
          {"NCCL_PROTO", "Simple"},
          {"NCCL_MAX_CTAS", "2"},
          {"NCCL_MNNVL_ENABLE", "0"}};
}

}  // namespace lockstep::cli
