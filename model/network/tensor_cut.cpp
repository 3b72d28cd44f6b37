#include "model/network/tensor_cut.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace lockstep {

Shape TensorCut::part_shape() const {
  Shape shape = whole;
  shape.at(dimension) /= parts;
  shape.at(inner_dimension) /= inner_parts;
  return shape;
}

namespace {

/// Stretches of `inner`, a part of a part, in the whole tensor.
std::vector<TensorRun> composed(const std::vector<TensorRun>& outer,
                                const std::vector<TensorRun>& inner) {
  std::vector<TensorRun> runs;
  for (const TensorRun& run : inner) {
    for (const TensorRun& around : outer) {
      const int64_t first = std::max(run.in_whole, around.in_part);
      const int64_t last = std::min(run.in_whole + run.elements, around.in_part + around.elements);
      if (first < last) {
        runs.push_back({run.in_part + first - run.in_whole,
                        around.in_whole + first - around.in_part, last - first});
      }
    }
  }
  return runs;
}

}  // namespace

// Outer sizes times sections are the turns, each with a stretch of the dimension and all behind it.
std::vector<TensorRun> TensorCut::runs_of(int32_t index) const {
  if (inner_parts > 1) {
    const TensorCut outer{whole, dimension, parts, sections};
    const TensorCut inner{outer.part_shape(), inner_dimension, inner_parts};
    return composed(outer.runs_of(index / inner_parts), inner.runs_of(index % inner_parts));
  }
  const auto at = whole.begin() + static_cast<ptrdiff_t>(dimension);
  const auto product = [](auto from, auto to) {
    return std::accumulate(from, to, int64_t{1}, std::multiplies<>());
  };
  const int64_t turns = product(whole.begin(), at) * sections;
  const int64_t stretch = product(at, whole.end()) / sections;
  const int64_t own = stretch / parts;
  std::vector<TensorRun> runs;
  for (int64_t turn = 0; turn < turns; ++turn) {
    if (!runs.empty() && parts == 1) {
      runs.back().elements += own;
      continue;
    }
    runs.push_back({turn * own, turn * stretch + index * own, own});
  }
  return runs;
}

}  // namespace lockstep
