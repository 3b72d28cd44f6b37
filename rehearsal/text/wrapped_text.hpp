#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

/// The words of a text on lines of at most `width` characters; a longer word has a line of its own.
std::vector<std::string> wrapped(std::string_view text, size_t width);

}  // namespace lockstep::cli
