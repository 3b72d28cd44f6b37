#pragma once

#include <cstdint>

#include "io/scenario/node.hpp"

namespace lockstep {

/// Equal for equal values, wherever they stand; tells changed scenarios apart, and is no protection
/// against those who try.
uint64_t digest_of(const Node& node);

}  // namespace lockstep
