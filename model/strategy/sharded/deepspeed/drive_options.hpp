#pragma once

#include <algorithm>
#include <cstdint>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// Offload to NVMe, which is ZeRO-Infinity (deepspeed/runtime/zero/offload_config.py and
/// deepspeed/runtime/swap_tensor). Counts are in elements, not bytes.
struct DriveOptions {
  bool optimizer = false;
  bool parameters = false;

  int64_t optimizer_buffers = 4;  ///< each as large as the largest sub-group
  bool pipeline_read = false;     ///< a sub-group is read while the one before is updated
  bool pipeline_write = false;    ///< a sub-group is written while the next one is updated

  int64_t parameter_buffers = 5;
  int64_t parameter_buffer_elements = 100'000'000;
  int64_t parameters_in_host = 1'000'000'000;  ///< of a rank, which stay in host memory

  int64_t block_bytes = 1'048'576;
  int64_t threads = 1;  ///< that share one request

  /// Smaller tensors stay in memory.
  bool takes(Bytes bytes) const {
    constexpr int64_t least = 1'048'576;
    return bytes >= Bytes(std::max(least, block_bytes));
  }
  /// What every request is rounded up to.
  int64_t multiple(DType dtype) const {
    constexpr int64_t aligned_bytes = 1024;
    return aligned_bytes * threads / size_of(dtype);
  }
  int64_t aligned(int64_t elements, DType dtype) const {
    const int64_t unit = multiple(dtype);
    return (elements + unit - 1) / unit * unit;
  }
};

}  // namespace lockstep
