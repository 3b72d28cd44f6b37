#pragma once

#include <optional>

#include "model/scenario/object.hpp"

namespace lockstep {

/// DeepSpeed's optimizer in host memory that updates as this one does, up to rounding. Nothing:
/// there is none, or it lacks an argument.
std::optional<Object> host_optimizer(const Object& optimizer);

}  // namespace lockstep
