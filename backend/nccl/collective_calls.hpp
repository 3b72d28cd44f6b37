#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <span>

#include "backend/device/device.hpp"

namespace lockstep::backend {

/// Where one communication finds its operands, in memory of a GPU.
struct CallOperands {
  const void* read = nullptr;  ///< of in-place operations the same as `write`
  void* write = nullptr;
  int32_t self = 0;  ///< index of this rank among the members
};

/// Whether NCCL sums and the quotient is formed afterwards: an average of integers, or one that is
/// divided after the sum.
bool divides_afterwards(const Op& op, AverageOrder order);
/// How much memory an operation needs to read from or write to, in bytes.
int64_t bytes_read(const Op& op, int64_t members);
int64_t bytes_written(const Op& op, int64_t members);

/// Adds the calls of NCCL that do `op` to the group that is open. Throws DeviceError.
void add_calls(const LinkedOp& linked, AverageOrder order, const CallOperands& operands,
               ncclComm_t communicator, cudaStream_t stream);

}  // namespace lockstep::backend
