#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/core/spelling.hpp"

namespace lockstep {

/// "did you mean `nearest`?", or the legal words when none is near and they are few.
std::string spelling_remedy(std::string_view word, const std::vector<std::string_view>& legal);

}  // namespace lockstep
