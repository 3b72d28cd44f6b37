#pragma once

#include <cstdint>

#include "model/core/ids.hpp"

namespace lockstep {

/// The place of a rank. Equal in every world.
struct Place {
  RankId rank{};
  int32_t world_size = 1;
  int32_t node = 0;
  int32_t local_rank = 0;
  int32_t local_world_size = 1;
  int32_t devices = 1;  ///< devices that this rank drives (DP, DDP2: several)
  int32_t attempt = 0;  ///< how often an elastic launcher has restarted this rank
  uint64_t seed = 0;
};

}  // namespace lockstep
