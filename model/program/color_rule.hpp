#pragma once

#include <cstdint>

#include "model/core/op.hpp"

namespace lockstep {

/// A colour that follows from a rank's number, so that one rank of many that do the same can tell
/// the colours of all.
struct ColorRule {
  int64_t block = 1;   ///< ranks that follow one another
  int64_t place = -1;  ///< whose ranks have colour 0 and all others none; -1: see of()

  /// Without a place the number of the block.
  int32_t of(int64_t rank) const {
    if (place < 0) {
      return static_cast<int32_t>(rank / block);
    }
    return rank % block == place ? 0 : no_color;
  }
};

}  // namespace lockstep
