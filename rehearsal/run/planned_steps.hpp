#pragma once

#include <cstdint>
#include <optional>

#include "model/trainer/prepare/prepare.hpp"

namespace lockstep::cli {

/// How many optimizer steps the training takes, unless it stops early. Nothing: the scenario does
/// not say so in numbers alone.
std::optional<int64_t> planned_steps(const Preparation& preparation);

}  // namespace lockstep::cli
