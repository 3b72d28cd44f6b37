#include "backend/gloo/collective_windows.hpp"

#include <algorithm>
#include <numeric>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

CollectiveWindows::CollectiveWindows(const Op& op, int64_t members, int64_t self, int64_t root)
    : op_(op), self_(self), root_(root) {
  const auto splits = op.list().splits;
  if (op.kind == OpKind::all_to_all) {
    sent_ = bytes_of_parts(splits.first(splits.size() / 2), members);
    got_ = bytes_of_parts(splits.subspan(splits.size() / 2), members);
  } else if (op.kind == OpKind::reduce_scatter) {
    sent_ = bytes_of_parts(splits, members);
  }
}

std::vector<int64_t> CollectiveWindows::bytes_of_parts(std::span<const int64_t> splits,
                                                       int64_t members) const {
  std::vector<int64_t> parts(static_cast<size_t>(members), op_.elements() / members);
  if (!splits.empty()) {
    ensure(splits.size() == parts.size(), "a collective has one split for each member");
    std::copy(splits.begin(), splits.end(), parts.begin());
  }
  for (int64_t& part : parts) {
    part *= size_of(op_.dtype);
  }
  return parts;
}

Window CollectiveWindows::window(int64_t from, int64_t to) const {
  const int64_t bytes = op_.bytes.count();
  const auto part_to = [this](int64_t member) {
    const auto end = sent_.begin() + member;
    return Window{std::accumulate(sent_.begin(), end, int64_t{0}), *end};
  };
  switch (op_.kind) {
    case OpKind::all_reduce:
    case OpKind::all_gather: return {0, bytes};
    case OpKind::reduce_scatter: return part_to(to);  // each member sums its own part
    case OpKind::reduce:
    case OpKind::gather: return to == root_ ? Window{0, bytes} : Window{};
    case OpKind::broadcast: return from == root_ ? Window{0, bytes} : Window{};
    case OpKind::scatter: return from == root_ ? Window{to * bytes, bytes} : Window{};
    case OpKind::all_to_all:
      return from == self_ ? part_to(to) : Window{0, got_[static_cast<size_t>(from)]};
    default: return {};
  }
}

bool CollectiveWindows::takes_result() const {
  switch (op_.kind) {
    case OpKind::reduce:
    case OpKind::gather: return self_ == root_;
    case OpKind::broadcast: return self_ != root_;
    default: return true;
  }
}

int64_t CollectiveWindows::result_bytes(int64_t members) const {
  if (reduces(op_.kind)) {
    return window(self_, self_).bytes;
  }
  int64_t bytes = 0;
  for (int64_t member = 0; member < members; ++member) {
    bytes += window(member, self_).bytes;
  }
  return bytes;
}

bool CollectiveWindows::sends_nothing() const {
  return op_.kind == OpKind::all_to_all &&
         std::ranges::all_of(sent_, [](int64_t bytes) { return bytes == 0; });
}

}  // namespace lockstep::backend
