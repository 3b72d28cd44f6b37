#pragma once

#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// A barrier as the framework makes it: NCCL has none, so c10d all-reduces one float there; Gloo
/// has its own. The host waits either way.
Program framework_barrier(Rank& rank, GroupId group, bool is_all_reduce, SiteId site);

/// PyTorch's broadcast_coalesced: packs tensors of one type into flat chunks of about `chunk`, at
/// most two in flight, broadcasts each from `root`, unpacks. The host waits for the end.
Program broadcast_coalesced(Rank& rank, GroupId group, std::vector<Slice> tensors, int32_t root,
                            Bytes chunk, SiteId site);
inline constexpr Bytes broadcast_chunk{250 * 1024 * 1024};

/// The sum (or maximum) of one small number over the group, on the host of every rank.
Task<int64_t> agree(Rank& rank, GroupId group, Slice scratch, int64_t own, Reduction reduction,
                    SiteId site);

}  // namespace lockstep
