#pragma once

#include <string>
#include <vector>

#include "cli/request.hpp"
#include "explain/json_text.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// The answer of a command about scenarios, which has the same shape for one case and for several.
/// Seconds, bytes and fractions, with the unit in the key. Absent figures are null.
Json json_of(const std::vector<const Rehearsal*>& cases, const Request& request);
/// The same of cases that are JSON already; `code`: of the command.
Json report_json(std::vector<Json> cases, const Request& request, ExitCode code);

/// One case of such an answer.
Json json_of(const Rehearsal& rehearsal, const Request& request);
/// A file that is no scenario, as a case that did not run.
Json json_of(const std::vector<Diagnostic>& diagnostics, const std::string& file,
             const Request& request);
Json json_of(const Finding& finding, const Sites& sites);
/// Of a scenario: what cannot run, or is not as it looks.
Json problems_json(const std::vector<Problem>& problems);

}  // namespace lockstep::cli
