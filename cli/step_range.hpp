#pragma once

#include <optional>
#include <string>

#include "model/trainer/loop/repetition.hpp"

namespace lockstep::cli {

/// "5000-5010", or "5000" alone; nothing: it is neither, or its last step comes before its first.
std::optional<KeptSteps> step_range_of(const std::string& text);

}  // namespace lockstep::cli
