#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "explain/json_text.hpp"
#include "properties/finding.hpp"

namespace lockstep::cli {

/// The levels that findings of a code may have, the gravest first. Empty for what is no code.
std::vector<Level> levels_of(std::string_view code);

/// `explain codes`: every code of a finding, with what it means.
std::string codes_text();
Json codes_json();

}  // namespace lockstep::cli
