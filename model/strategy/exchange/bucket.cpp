#include "model/strategy/exchange/bucket.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace lockstep {

BucketAssignment assign_buckets(std::span<const BucketedTensor> tensors,
                                std::span<const size_t> order, std::span<const Bytes> limits) {
  struct Open {
    std::vector<size_t> tensors;
    Bytes bytes{};
    size_t limit = 0;
  };
  BucketAssignment closed;
  std::map<DType, Open> open_by_type;
  for (const size_t index : order) {
    Open& open = open_by_type[tensors[index].dtype];
    open.tensors.push_back(index);
    open.bytes += tensors[index].bytes;
    if (!limits.empty() && open.bytes >= limits[std::min(open.limit, limits.size() - 1)]) {
      closed.push_back(std::exchange(open.tensors, {}));
      open.bytes = Bytes{};
      ++open.limit;
    }
  }
  for (auto& [dtype, open] : open_by_type) {
    if (!open.tensors.empty()) {
      closed.push_back(std::move(open.tensors));
    }
  }
  return closed;
}

BucketAssignment assign_buckets(std::span<const BucketedTensor> tensors,
                                std::span<const Bytes> limits) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  BucketAssignment buckets = assign_buckets(tensors, order, limits);
  std::sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  return buckets;
}

}  // namespace lockstep
