#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "properties/diagnosis/calls.hpp"

namespace lockstep {

/// Calls of a communicator as the training of a rank numbers them: a simulation may have left some
/// out, and the positions of the others are those among the simulated ones.
class CallNumbers {
 public:
  CallNumbers(const Journal& journal, int32_t rank, uint64_t communicator);

  /// Of the call at a position, from 0: 1 is the first call.
  int64_t of(int64_t position) const;

 private:
  /// How many calls were left out before which position.
  std::vector<std::pair<int64_t, int64_t>> left_out_;
};

/// How many of these calls of a rank are at a site, with those that a simulation has left out.
int64_t count_with_left_out(const Journal& journal, int32_t rank, const std::vector<Call>& calls,
                            SiteId site);

}  // namespace lockstep
