#pragma once

#include <cstdint>
#include <vector>

#include "model/core/ids.hpp"

namespace lockstep {

/// A process group as this rank knows it, also where it is no member.
struct Group {
  GroupId id{};
  std::vector<int32_t> members;  ///< global ranks in group order; empty: the whole world
};

}  // namespace lockstep
