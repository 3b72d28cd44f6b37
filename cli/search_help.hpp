#pragma once

#include <string_view>

namespace lockstep::cli {

// The pages of the commands that try many settings of one scenario.
extern const std::string_view plan_help;
extern const std::string_view sweep_help;

}  // namespace lockstep::cli
