#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/core/ids.hpp"

namespace lockstep {

/// A process group as this rank knows it, also where it is no member.
struct Group {
  GroupId id{};
  std::vector<int32_t> members;  ///< global ranks in group order; empty: the whole world

  bool has(int32_t rank) const {
    return members.empty() || std::ranges::find(members, rank) != members.end();
  }
  size_t size(int32_t world_size) const {
    return members.empty() ? static_cast<size_t>(world_size) : members.size();
  }
  /// The position of a member, or the number of members.
  int64_t index_of(int32_t rank) const {
    return members.empty() ? rank : std::ranges::find(members, rank) - members.begin();
  }
};

}  // namespace lockstep
