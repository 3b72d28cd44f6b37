#pragma once

#include <cstdint>

#include "model/core/ids.hpp"

namespace lockstep {

/// The ranks that compute the layers of one replica together, of which each has parts, as one of
/// them sees it.
struct TensorRanks {
  GroupId group{};
  StreamId on{};  ///< where what travels between them goes
  int32_t ranks = 1;
  int32_t index = 0;  ///< of this rank: which parts it has
};

}  // namespace lockstep
