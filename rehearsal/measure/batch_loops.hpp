#pragma once

#include <algorithm>
#include <vector>

#include "model/core/site.hpp"
#include "model/program/journal.hpp"

namespace lockstep::cli {

/// The loops over batches in which a rank is, innermost last: a validation lies within the
/// training.
class BatchLoops {
 public:
  explicit BatchLoops(const Sites& sites) : sites_(sites) {}

  void add(const Row& row) {
    const bool is_branch =
        row.row == RowKind::choice && row.tag == static_cast<int32_t>(ChoiceKind::branch);
    const Site* const site = is_branch ? sites_.find(row.site) : nullptr;
    if (site == nullptr || site->batches.empty()) {
      return;
    }
    is_marked_ = true;
    // What lies within it ended without a mark where an exception or a limit ended it.
    const auto known = std::ranges::find(inside_, row.site);
    inside_.erase(known, inside_.end());
    if (row.peer != 0) {
      inside_.push_back(row.site);
    }
  }
  /// Ranks mark them where there are several.
  bool are_marked() const { return is_marked_; }
  bool evaluates() const {
    return !inside_.empty() && sites_.find(inside_.back())->batches != "training";
  }

 private:
  const Sites& sites_;
  std::vector<SiteId> inside_;
  bool is_marked_ = false;
};

}  // namespace lockstep::cli
