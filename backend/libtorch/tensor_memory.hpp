#pragma once

#include <atomic>
#include <cstdint>

#include "model/core/units.hpp"

namespace lockstep::backend {

/// Memory of the tensors of this process on the CPU: our buffers, what LibTorch's graphs save, and
/// what its kernels use while they run. Not what its libraries take without an allocator of tensors
/// (oneDNN's scratch).
class TensorMemory {
 public:
  void add(int64_t bytes);
  /// The most that was held at once since the last call; what is held now counts on.
  Bytes take_peak();

 private:
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> peak_{0};
};

/// Counts every tensor that LibTorch makes from now on, until the next call. What it gives lives as
/// long as the process, since the last tensors do.
TensorMemory& count_tensor_memory();

}  // namespace lockstep::backend
