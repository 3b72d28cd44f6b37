#pragma once

#include <cstdint>
#include <string_view>

#include "io/scenario/node.hpp"

namespace lockstep {

/// Of a scenario (a map) as far as it says what ranks do: without `expect`, `cluster.calibration`
/// and all of `verify` but `numerics`. Equal for equal values, wherever they stand, in quotes or
/// not; the order of keys counts within `program` and `metrics` alone, where calls follow it. Tells
/// changed scenarios apart, and is no protection against those who try. What is in files that it
/// names is not in it: the loader adds that (digest_with).
uint64_t digest_of_run(const Node& scenario);

/// Of a text that follows what the digest is of.
uint64_t digest_with(uint64_t digest, std::string_view text);

}  // namespace lockstep
