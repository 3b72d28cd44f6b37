#include "model/network/tensor_cut.hpp"

#include <functional>
#include <numeric>

namespace lockstep {

Shape TensorCut::part_shape() const {
  Shape shape = whole;
  shape.at(dimension) /= parts;
  return shape;
}

// Outer sizes times sections are the turns, each with a stretch of the dimension and all behind it.
std::vector<TensorRun> TensorCut::runs_of(int32_t index) const {
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
