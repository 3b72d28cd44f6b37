#pragma once

#include <string>

#include "cli/compare.hpp"
#include "cli/json.hpp"
#include "cli/rehearsal.hpp"
#include "cli/style.hpp"

namespace lockstep::cli {

/// Two lines that `exec` and `compare` end with, and what differs.
std::string render_comparison(const Rehearsal& rehearsal, const Comparison& comparison,
                              const Style& style);
Json json_of(const Comparison& comparison);

}  // namespace lockstep::cli
