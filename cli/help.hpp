#pragma once

#include <string_view>

namespace lockstep::cli {

/// One screen of help of a command; of the program itself for an empty name.
std::string_view help_of(std::string_view command);

}  // namespace lockstep::cli
