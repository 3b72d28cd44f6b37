#pragma once

#include <cstdint>

namespace lockstep {

/// Which run of which scenario a rank took part in, so that what is left of another is not taken
/// for it.
struct RunIdentity {
  uint64_t run = 0;       ///< a number that rank 0 has drawn; the same on all ranks
  uint64_t scenario = 0;  ///< Scenario::digest
  bool operator==(const RunIdentity&) const = default;
};

}  // namespace lockstep
