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
  Slice received{};
  Slice returned{};
  std::vector<int64_t> splits{};  ///< elements sent to each rank, then received from each
  bool is_sized = false;
};

}  // namespace lockstep
