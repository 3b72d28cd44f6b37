#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep {

/// The bracket or brace of a text that is not YAML that is never closed, or closed by the other
/// kind; nothing where brackets are not at fault.
std::optional<Diagnostic> find_bracket_fault(std::string_view text, const std::string& name);

/// Explains why the parser refuses a text at this line and column (from 1): a bracket,
/// a tab that indents, else the parser's own words.
Diagnostic explain_yaml_fault(std::string_view text, const std::string& name, int line, int column,
                              const std::string& message);

}  // namespace lockstep
