#pragma once

#include <optional>

#include "model/scenario/object.hpp"

namespace lockstep {

/// The optimizer that this one holds and divides over the ranks (ZeroRedundancyOptimizer), with
/// the arguments that it hands on; none: it divides nothing, or does not say what it holds.
std::optional<Object> wrapped_optimizer(const Object& optimizer);

}  // namespace lockstep
