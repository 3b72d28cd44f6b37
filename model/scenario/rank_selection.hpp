#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Which ranks a fault or an expectation speaks of.
struct RankSelection {
  enum class Kind : uint8_t { all, listed, others };
  Kind kind = Kind::all;
  std::vector<int64_t> ranks;  ///< of `listed`, in the order of the file
};

/// The largest number of ranks that a scenario may ask for.
inline constexpr int64_t maximum_ranks = 1'048'576;

}  // namespace lockstep
