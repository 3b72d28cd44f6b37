#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/nccl_communicator.hpp"

namespace lockstep::sim {

/// What NCCL_ALGO and NCCL_PROTO leave of the algorithms and protocols of one function, by place.
struct NcclAllowed {
  std::array<bool, 7> algorithms{true, true, true, true, true, true, true};
  std::array<bool, nccl_protocols> protocols{true, true, true};
  bool names_ll128 = false;  ///< asked for also where it is off by default
};

/// Environment variables of NCCL that its costs depend on.
struct NcclSettings {
  std::array<NcclAllowed, 5> allowed{};         ///< by NcclFunction
  bool has_peer_to_peer = true;                 ///< not NCCL_P2P_DISABLE
  bool has_shared_memory = true;                ///< not NCCL_SHM_DISABLE
  bool has_infiniband = true;                   ///< not NCCL_IB_DISABLE, and NCCL_NET not Socket
  bool has_nvls = true;                         ///< not NCCL_NVLS_ENABLE=0
  bool has_collnet = false;                     ///< NCCL_COLLNET_ENABLE
  std::optional<double> network_overhead_us{};  ///< NCCL_NET_OVERHEAD, in nanoseconds there
  std::optional<int> channels_min{};            ///< NCCL_MIN_CTAS, NCCL_MIN_NCHANNELS
  std::optional<int> channels_max{};            ///< NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS
  std::optional<int> socket_threads{};          ///< NCCL_SOCKET_NTHREADS; of one connection
  std::optional<int> sockets_per_thread{};      ///< NCCL_NSOCKS_PERTHREAD
};

/// A variable as the scenario or the command line gives it.
struct NcclVariable {
  std::string name;
  std::string value;
};

/// A variable whose value NCCL would not understand.
struct NcclSettingError {
  std::string message;
  std::string remedy;
};

struct NcclSettingsResult {
  NcclSettings settings;
  std::vector<NcclSettingError> errors;
  std::vector<std::string> ignored;  ///< variables of NCCL that are not modelled
};
/// Of variables that begin with NCCL_; others are passed over.
NcclSettingsResult read_nccl_settings(const std::vector<NcclVariable>& variables);

}  // namespace lockstep::sim
