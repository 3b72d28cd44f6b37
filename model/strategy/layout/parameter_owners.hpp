#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// A parameter as a partition of whole parameters over ranks sees it.
struct OwnedSize {
  int64_t elements = 0;
  bool trainable = true;
};

/// The rank that owns each parameter. In the given order each goes to the rank that has the fewest
/// elements so far; frozen ones count as one element (FairScale, OSS.partition_parameters).
std::vector<int32_t> owners_in_order(const std::vector<OwnedSize>& parameters, int32_t ranks);

/// The same with the largest first, where all count with their size (torch,
/// ZeroRedundancyOptimizer._partition_parameters).
std::vector<int32_t> owners_largest_first(const std::vector<OwnedSize>& parameters, int32_t ranks);

}  // namespace lockstep
