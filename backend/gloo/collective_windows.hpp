#pragma once

#include <cstdint>
#include <vector>

#include "model/core/op.hpp"

namespace lockstep::backend {

/// A part of a contribution, in bytes.
struct Window {
  int64_t begin = 0;
  int64_t bytes = 0;
};

/// Which part of whose contribution goes to whom in one collective. Members are indices in its
/// group.
class CollectiveWindows {
 public:
  /// `op` outlives the windows.
  CollectiveWindows(const Op& op, int64_t members, int64_t self, int64_t root);

  /// The part that `from` sends to `to`; one of the two is this member.
  Window window(int64_t from, int64_t to) const;
  /// Whether something is written on this member. What a broadcast gives its root is there already.
  bool takes_result() const;
  /// Bytes that are written on this member, from the beginning of the output.
  int64_t result_bytes(int64_t members) const;
  /// An all_to_all of which this member gives no part to anybody.
  bool sends_nothing() const;
  /// Bytes of the parts of an all_to_all (to each member, from each) or a reduce_scatter (of each).
  const std::vector<int64_t>& sent() const { return sent_; }
  const std::vector<int64_t>& got() const { return got_; }

 private:
  std::vector<int64_t> bytes_of_parts(std::span<const int64_t> splits, int64_t members) const;

  const Op& op_;
  int64_t self_;
  int64_t root_;
  std::vector<int64_t> sent_;
  std::vector<int64_t> got_;
};

}  // namespace lockstep::backend
