#pragma once

#include <string>

#include "cli/render/style.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Renders a case for `run`: the configuration, the four answers, the breakdown, the basis.
std::string render_run(const Rehearsal& rehearsal, const Style& style, bool verbose);

/// Renders a case for `verify`: findings, and what was checked and what was not.
std::string render_verify(const Rehearsal& rehearsal, const Style& style);

/// Findings, problems and expectations, common to both.
std::string render_findings(const Rehearsal& rehearsal, const Style& style);
/// Why there is no answer; empty where there is one.
std::string render_undecided(const Rehearsal& rehearsal, const Style& style);
std::string render_expectations(const Rehearsal& rehearsal, const Style& style);

/// " (48.1 ms to 55 ms)", or nothing without a range.
std::string range_text(const std::optional<Time>& low, const std::optional<Time>& high);

/// "scenario.yaml:case".
std::string title_of(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
