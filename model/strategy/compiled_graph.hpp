#pragma once

#include <cstdint>

namespace lockstep {

/// A graph that is compiled once and then found again: all that is recorded between two calls of
/// XLA's mark_step. Two batches of one graph have the same sizes and do the same.
struct CompiledGraph {
  bool training = true;
  int64_t samples = 0;          ///< of the batch, on one rank
  bool adds_gradients = false;  ///< to those of batches before it in the window
  bool updates = false;         ///< the optimizer steps at its end
  bool makes_state = false;     ///< which the optimizer then has
  int64_t forwards = 1;

  bool operator==(const CompiledGraph&) const = default;
};

}  // namespace lockstep
