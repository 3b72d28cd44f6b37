#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Device memory beside what torch's allocator holds: the process takes it, and no `memory.peak`
/// and no torch.cuda.max_memory_allocated() shows it. Estimated, not measured.
struct DeviceReserve {
  Bytes cuda_context{};
  Bytes nccl{};
  Bytes total() const { return cuda_context + nccl; }
};

/// The reserve of one rank's device; zero on a CPU and for bare programs.
///   CUDA context: 512 MiB. PyTorch's maintainers state some 300 MB with kernels that are loaded
///     when first used, and over 1 GB before CUDA 11.7 (pytorch/pytorch issue 107667); more
///     libraries load more.
///   NCCL: each communicator of several GPUs holds, per channel and connection, 10 MiB at the
///     receiver (Simple 4 MiB, LL128 4.7 MiB, LL 0.5 MiB, in pages of 2 MiB) and 2 MiB at the
///     sender (NVIDIA/nccl issue 1685, which counts both on 8 H100). A ring and a tree are two
///     connections. Channels: two per NVLink, at most 24; without NVLink 4. On 8 H100 that and the
///     context come to 1.06 GiB; the issue reports 1.06 GB.
DeviceReserve reserve_of(const OneRun& run, int32_t rank);

/// A peak that leaves less than the reserve (LS401, a warning). Nothing where ranks ran out of it.
std::vector<Finding> tight_memory(const OneRun& run);

}  // namespace lockstep::cli
