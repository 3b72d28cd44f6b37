#pragma once

#include <string>

#include "cli/render/style.hpp"
#include "properties/finding.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// A finding as the user reads it: verdict, place with the source around it, who called what, when,
/// why, what follows, the smallest settings that show it, and the fix.
std::string render_finding(const Finding& finding, const Sites& sites, const Sources& sources,
                           const Style& style, const std::string& ignored = "");

/// Problems that keep a scenario from running, each with its place and a caret; notes are one line.
std::string render_problems(const std::vector<Problem>& problems, const Sources& sources,
                            const Style& style);

/// Renders the logged values of ranks and of one device, one line per key; empty without any.
std::string render_logged(const Rehearsal& rehearsal);
/// The checkpoint that each rank believes is best, and the learning rate of each at the end; empty
/// where the scenario asks for neither.
std::string render_decided(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
