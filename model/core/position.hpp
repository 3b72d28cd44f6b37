#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// The position of a rank's program, as its trainer reports it. A step begins with its first batch,
/// so a hook that runs after the update of step 3 still belongs to step 3.
struct Position {
  std::string_view hook{};  ///< that begins now; empty: a batch or an epoch begins
  int64_t step = -1;        ///< optimizer step (from 0) that began last; -1: none yet
  int64_t epoch = -1;       ///< of training (from 0) that began last; -1: none yet
};

}  // namespace lockstep
