#pragma once

#include <cstdint>
#include <string>

#include "rehearsal/launch/gpu_inventory.hpp"

namespace lockstep::cli {

/// `exec --device`.
enum class DeviceWish : uint8_t { automatic, cpu, cuda };

/// On what the ranks of a real run shall run, as asked for.
struct DeviceRequest {
  DeviceWish wish = DeviceWish::automatic;
  bool oversubscribe = false;  ///< ranks may share a GPU
};

/// Further inputs of the choice.
struct DeviceFacts {
  bool scenario_has_gpus = false;  ///< its cluster is made of devices with CUDA
  bool has_cuda_program = false;   ///< lockstep-rank-cuda was built
  int32_t ranks = 1;
  int32_t devices_per_rank = 1;
};

/// The oldest CUDA version that the driver must be able to run, as 13000.
inline constexpr int cuda_version_needed = 13000;

struct DeviceChoice {
  bool cuda = false;
  std::string told;     ///< why this one; empty: nothing to say
  std::string problem;  ///< what is missing for what was asked for; empty: nothing is missing
  std::string remedy;
};

/// Automatic: GPUs where the scenario has some and this machine has enough of them, else the CPU,
/// and says so. Asked for by name, a device that cannot be had is a problem.
DeviceChoice choose_device(const DeviceRequest& request, const DeviceFacts& facts,
                           const GpuInventory& inventory);

}  // namespace lockstep::cli
