#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Parameters that stage 3 updates together: their parts lie one behind the other in the partition
/// of a rank.
struct SubGroup {
  std::vector<size_t> parameters;
  int64_t begin = 0;
  int64_t elements = 0;
  bool operator==(const SubGroup&) const = default;
};

}  // namespace lockstep
