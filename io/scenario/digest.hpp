#pragma once

#include <cstdint>

#include "io/scenario/node.hpp"

namespace lockstep {

/// Of a scenario (a map) as far as it says what ranks do: without `expect`, `cluster.calibration`
/// and all of `verify` but `numerics`. Equal for equal values, wherever they stand, in quotes or
/// not; the order of keys counts within `program` and `metrics` alone, where calls follow it. Tells
/// changed scenarios apart, and is no protection against those who try. Files that it names are not
/// in it.
uint64_t digest_of_run(const Node& scenario);

}  // namespace lockstep
