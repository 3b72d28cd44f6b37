#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::backend {

/// No GPU, a driver that is too old, or fewer GPUs than are asked for; says how to get it.
class NoGpu : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The CUDA devices that a rank drives, by DeviceId: each rank of this host has its own, one after
/// the other, or shares them in turn. Throws NoGpu.
std::vector<int> gpus_of_rank(int local_rank, int devices_per_rank, bool oversubscribe);

/// "NVIDIA H200, driver for CUDA 13.0": the first device.
std::string gpu_description();
/// "NCCL 2.28.9".
std::string nccl_version();

}  // namespace lockstep::backend
