#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

/// What MegatronStrategy takes beside its mesh: Megatron-LM's DistributedDataParallelConfig and
/// sequence_parallel.
struct MegatronOptions {
  bool sequence_parallel = false;
  int64_t micro_batch_size = 1;  ///< of the data module
  bool use_distributed_optimizer = false;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  bool average_in_collective = false;
  bool grad_reduce_in_fp32 = true;
  std::optional<int64_t> bucket_size{};  ///< in elements; none: max(40 M, 1 M x replicas)
};

}  // namespace lockstep
