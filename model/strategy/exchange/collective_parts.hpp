#pragma once

#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// A barrier as the framework makes it: NCCL has none, so c10d all-reduces one float there; Gloo
/// has its own. The host waits either way.
Program framework_barrier(Rank& rank, GroupId group, bool is_all_reduce, SiteId site);

/// Bytes at which a chunk of broadcast_coalesced closes (torch's broadcast_bucket_size).
inline constexpr Bytes broadcast_chunk{250 * 1024 * 1024};

/// PyTorch's broadcast_coalesced (c10d comm.cpp): packs tensors of one type into flat chunks, at
/// most two in flight, broadcasts each from `root`, unpacks. The host waits for the end.
Program broadcast_coalesced(Rank& rank, GroupId group, std::vector<Slice> tensors, int32_t root,
                            SiteId site);

/// One number that a group reduces again and again to agree on something.
class SharedNumber {
 public:
  void allocate(Rank& rank, DType dtype);
  /// The host waits for the last reduce() first.
  Program release(Rank& rank);
  /// Starts the all_reduce of every rank's `own`; the host does not wait for it.
  Program reduce(Rank& rank, GroupId group, int64_t own, Reduction reduction, SiteId site);
  /// Returns the result of the last reduce(). The host waits for it.
  Task<int64_t> value(Rank& rank);

 private:
  Slice number_;
  Ticket reduced_;
};

}  // namespace lockstep
