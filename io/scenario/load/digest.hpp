#pragma once

#include <cstdint>
#include <string_view>

#include "io/scenario/reader/node.hpp"

namespace lockstep {

/// Digest of a scenario (a map), restricted to what ranks do: without `expect`,
/// `cluster.calibration` and all of `verify` but `numerics`. Equal for equal values, wherever they
/// are, in quotes or not; the order of keys counts within `program` and `metrics` alone, where
/// calls follow it. Distinguishes changed scenarios, but does not protect against forgery. What is
/// in files that it names is not in it: the loader adds that (digest_with).
uint64_t digest_of_run(const Node& scenario);

/// Extends `digest` by `text`.
uint64_t digest_with(uint64_t digest, std::string_view text);

}  // namespace lockstep
