#pragma once

#include <cstdint>

#include "model/scenario/object.hpp"

namespace lockstep {

/// `--nnodes` of torchrun: a number, or `MIN:MAX`.
struct NodeRange {
  int64_t least = 1;
  int64_t most = 1;
  bool is_legal = true;  ///< false: it is neither, or upside down
};
/// Of a launcher that says nothing, one node.
NodeRange node_range_of(const Object& launcher);

}  // namespace lockstep
