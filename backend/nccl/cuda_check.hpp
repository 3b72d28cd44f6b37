#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "backend/device/device.hpp"

namespace lockstep::backend {

/// Throws DeviceError where a call of CUDA did not succeed.
inline void check_cuda(cudaError_t result, const char* call) {
  if (result != cudaSuccess) {
    cudaGetLastError();  // the error is reported here; the next call shall not find it again
    throw DeviceError(std::string(call) + ": " + cudaGetErrorString(result));
  }
}

}  // namespace lockstep::backend
