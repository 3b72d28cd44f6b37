#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// Where the program of a rank stands, as its trainer says it. A step begins with its first batch,
/// so a hook that runs after the update of step 3 still stands in step 3.
struct Position {
  std::string_view hook{};  ///< that begins now; empty: a batch or an epoch begins
  int64_t step = -1;        ///< optimizer step (from 0) that began last; -1: none yet
  int64_t epoch = -1;       ///< of training (from 0) that began last; -1: none yet
};

}  // namespace lockstep
