#include "model/strategy/local_model/elementwise.hpp"

#include "model/strategy/exchange/coalesced.hpp"

namespace lockstep {

Ticket elementwise(Rank& rank, Kernel kernel, const std::vector<Slice>& reads,
                   const std::vector<Slice>& writes, double scalar, const ComputeOptions& options) {
  KernelCall call;
  call.kernel = kernel;
  call.reads = reads;
  call.writes = writes;
  call.scalars = {&scalar, 1};
  call.memory_traffic = total_bytes(reads) + total_bytes(writes);
  return rank.compute(call, options);
}

Ticket moving(Rank& rank, const std::vector<Slice>& reads, const std::vector<Slice>& writes,
              const ComputeOptions& options) {
  return elementwise(rank, Kernel::roofline, reads, writes, 0, options);
}

}  // namespace lockstep
