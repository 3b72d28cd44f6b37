#include "backend/nccl/gpus.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

namespace lockstep::backend {

namespace {

// CUDA writes 13.0 as 13000.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::vector<int> gpus_of_rank(int local_rank, int devices_per_rank, bool oversubscribe) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    throw NoGpu(
        fmt::format("no GPU can be used here: {}; the driver is for CUDA {}, and CUDA {} is "
                    "needed; lockstep doctor says what is missing",
                    result == cudaSuccess ? "none is visible" : cudaGetErrorString(result),
                    driver == 0 ? "none" : version_text(driver), version_text(CUDART_VERSION)));
  }
  const int needed = (local_rank + 1) * devices_per_rank;
  if (needed > count && !oversubscribe) {
    throw NoGpu(
        fmt::format("local rank {} needs {} GPUs of this host, which has {}; start fewer "
                    "ranks, or let them share GPUs: --oversubscribe",
                    local_rank, needed, count));
  }
  if (devices_per_rank > count) {
    throw NoGpu(
        fmt::format("a rank drives {} GPUs, and this host has {}", devices_per_rank, count));
  }
  std::vector<int> gpus;
  for (int device = 0; device < devices_per_rank; ++device) {
    gpus.push_back((local_rank * devices_per_rank + device) % count);
  }
  return gpus;
}

std::string gpu_description() {
  cudaDeviceProp properties{};
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    return "";
  }
  return fmt::format("{}, driver for CUDA {}", properties.name, version_text(driver));
}

std::string nccl_version() {
  int version = 0;
  ncclGetVersion(&version);
  return fmt::format("NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace lockstep::backend
