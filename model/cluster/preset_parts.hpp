#pragma once

#include "model/cluster/presets.hpp"

// Shared by the tables of presets.

namespace lockstep {

constexpr BytesPerSecond gigabytes_per_second(int64_t count) {
  return BytesPerSecond(1'000'000'000) * count;
}
constexpr BytesPerSecond gigabits_per_second(int64_t count) {
  return BytesPerSecond(125'000'000) * count;
}

/// PCI Express base specifications: 8, 16, 32 GT/s per lane, 128b/130b coding, 16 lanes.
constexpr BytesPerSecond pcie_x16(int64_t gigatransfers) {
  return BytesPerSecond(gigatransfers * 16 * 1'000'000'000 / 8 * 128 / 130);
}

/// Direct NVLinks of eight V100 in a hybrid cube mesh: DGX-1V and machines built like it.
std::vector<NvlinkPair> hybrid_cube_mesh();

/// Machines that clouds rent out, and desktop computers.
std::vector<Cluster> cloud_presets();

/// Devices that are no GPUs of NVIDIA, and the machines that have them.
std::vector<DeviceModel> other_accelerators();
std::vector<Cluster> tpu_presets();
Cluster apple_m2_ultra();

}  // namespace lockstep
