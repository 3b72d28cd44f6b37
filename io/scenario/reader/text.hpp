#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep {

/// Finds errors that make a text unreadable: too long, not UTF-8, control characters.
std::optional<Diagnostic> check_text(std::string_view text, const std::string& name,
                                     size_t limit_bytes);

/// Whether the word `null` is at this position.
bool spelled_null(std::string_view text, size_t position);

/// Parentheses opened and not closed outside of single quotes; negative when more are closed.
int open_parentheses(std::string_view text);

}  // namespace lockstep
