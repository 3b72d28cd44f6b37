#pragma once

#include <vector>

#include "backend/device/board.hpp"
#include "model/core/op.hpp"

namespace lockstep::backend {

/// One new_group while its members come together over the board: it needs nobody's device, so a
/// communicator with work in flight is not held up.
class GroupMaking {
 public:
  /// `op` is the `call`-th collective of the parent with this key and these members; all outlive
  /// this.
  GroupMaking(const Op& op, uint64_t parent, int64_t call, std::span<const int32_t> parent_members,
              int32_t rank, Board& board);

  /// Whether all have come; looks once more at those that have not.
  bool all_came();
  /// The members of this rank's new group, once all have come.
  std::vector<int32_t> members() const;

 private:
  const Op& op_;
  std::span<const int32_t> parent_members_;
  Board& board_;
  std::string name_;
  std::vector<std::optional<int32_t>> color_;  ///< by member of the parent; no_color: by list
  size_t came_ = 0;
};

}  // namespace lockstep::backend
