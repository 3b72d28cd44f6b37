#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::cli {

/// A text in UTF-8 of at most `count` characters (at least 2): a longer one ends, or begins, with
/// ".." in place of what is left out.
std::string with_first_characters(std::string_view text, size_t count);
std::string with_last_characters(std::string_view text, size_t count);

}  // namespace lockstep::cli
