#pragma once

#include "model/program/rank.hpp"

namespace lockstep {

// Objects as Python pickles them, sent as torch/distributed/distributed_c10d.py sends them: first
// their sizes, for which the host waits, then bytes, of as many as the largest of them has.

/// Who takes part, and what the calls are named after.
struct ObjectExchange {
  GroupId group = world_group;
  int32_t ranks = 1;  ///< of the group
  int32_t root = 0;
  SiteId site{};
};

/// From `root` to all (broadcast_object_list of one object; FairScale's broadcast_object).
Program broadcast_pickled(Rank& rank, ObjectExchange exchange, Bytes size);
/// From all to all (all_gather_object).
Program all_gather_pickled(Rank& rank, ObjectExchange exchange, Bytes largest);
/// From all to `root` (gather_object).
Program gather_pickled(Rank& rank, ObjectExchange exchange, Bytes largest);
/// From `root` to each its own (scatter_object_list).
Program scatter_pickled(Rank& rank, ObjectExchange exchange, Bytes largest);

}  // namespace lockstep
