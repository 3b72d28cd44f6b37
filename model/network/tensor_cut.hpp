#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

/// Sizes of one sample's tensor, or of a parameter, outermost first, without the batch dimension.
using Shape = std::vector<int64_t>;

/// A stretch of a rank's part that is also one of the whole tensor. In elements.
struct TensorRun {
  int64_t in_part = 0;
  int64_t in_whole = 0;
  int64_t elements = 0;
};

/// A tensor that ranks have cut along one dimension into equal parts, or along two.
struct TensorCut {
  Shape whole{};
  size_t dimension = 0;
  int32_t parts = 1;
  int64_t sections = 1;  ///< each cut by itself: query, key and value of one projection
  /// Each of these parts is cut again: its part `j` is number `i * inner_parts + j` of all.
  size_t inner_dimension = 0;
  int32_t inner_parts = 1;
  /// By the ranks that divide the experts of a mixture, where these are others than the tensor
  /// ranks.
  bool by_experts = false;

  bool operator==(const TensorCut&) const = default;
  /// The size of every part.
  Shape part_shape() const;
  /// What part `index` consists of, ascending in both.
  std::vector<TensorRun> runs_of(int32_t index) const;
};

}  // namespace lockstep
