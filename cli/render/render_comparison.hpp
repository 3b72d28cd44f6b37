#pragma once

#include <string>

#include "cli/render/json.hpp"
#include "cli/render/style.hpp"
#include "rehearsal/measure/compare.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Two lines that `exec` and `compare` end with, and what differs.
std::string render_comparison(const Rehearsal& rehearsal, const Comparison& comparison,
                              const Style& style);
Json json_of(const Comparison& comparison);

}  // namespace lockstep::cli
