#include "model/strategy/layout/parameter_owners.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep {

namespace {

std::vector<int32_t> greedy(const std::vector<int64_t>& weights, const std::vector<size_t>& order,
                            int32_t ranks) {
  std::vector<int64_t> load(static_cast<size_t>(ranks), 0);
  std::vector<int32_t> owners(weights.size(), 0);
  for (const size_t parameter : order) {
    const auto least = std::min_element(load.begin(), load.end());
    owners[parameter] = static_cast<int32_t>(least - load.begin());
    *least += weights[parameter];
  }
  return owners;
}

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

}  // namespace

std::vector<int32_t> owners_in_order(const std::vector<OwnedSize>& parameters, int32_t ranks) {
  std::vector<int64_t> weights;
  for (const OwnedSize& parameter : parameters) {
    weights.push_back(parameter.trainable ? parameter.elements : 1);
  }
  return greedy(weights, in_order(weights.size()), ranks);
}

std::vector<int32_t> owners_largest_first(const std::vector<OwnedSize>& parameters, int32_t ranks) {
  std::vector<int64_t> weights;
  for (const OwnedSize& parameter : parameters) {
    weights.push_back(parameter.elements);
  }
  std::vector<size_t> order = in_order(weights.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  return greedy(weights, order, ranks);
}

}  // namespace lockstep
