#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/core/buffer.hpp"

namespace lockstep {

/// Tokens on their way to the experts of a layer and back. With numerics rows are known when they
/// have been counted, else every rank sends alike to all.
struct ExpertRun {
  size_t layer = 0;
  Slice sent{};      ///< rows, expert by expert
  Slice choices{};   ///< by expert
  Slice arriving{};  ///< rows by source and own expert
  Slice counted{};   ///< choices of all ranks, where all gather them
  Slice arrived{};   ///< rows that the ranks with other experts have sent
  Slice received{};  ///< the same of all ranks that compute these experts together
  Slice returned{};
  std::vector<int64_t> splits{};    ///< elements sent to each rank, then received from each
  std::vector<int64_t> gathered{};  ///< elements that each rank of the same experts has got
  bool is_sized = false;
};

/// Memory of rows, or of their gradients, at each step of their way. What does not travel has one
/// memory.
struct RowsOnTheWay {
  Slice at_home{};  ///< on the rank whose tokens they are
  Slice arrived{};
  Slice at_experts{};
};

}  // namespace lockstep
