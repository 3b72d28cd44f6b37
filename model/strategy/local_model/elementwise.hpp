#pragma once

#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// One kernel over lists of tensors (fill, copy, scale, add, cast), priced by the memory that it
/// moves. `scalar` is that of fill and scale; others have none.
Ticket elementwise(Rank& rank, Kernel kernel, const std::vector<Slice>& reads,
                   const std::vector<Slice>& writes, double scalar, const ComputeOptions& options);

/// The same on the compute stream.
inline Ticket elementwise(Rank& rank, Kernel kernel, const std::vector<Slice>& reads,
                          const std::vector<Slice>& writes, double scalar, After after,
                          SiteId site) {
  return elementwise(rank, kernel, reads, writes, scalar, {compute_stream, after, site});
}

/// The same price where reads and writes do not pair up, because nobody carries values: one kernel
/// that computes nothing.
Ticket moving(Rank& rank, const std::vector<Slice>& reads, const std::vector<Slice>& writes,
              const ComputeOptions& options);

}  // namespace lockstep
