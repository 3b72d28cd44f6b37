#pragma once

#include <string>
#include <vector>

#include "cli/explore.hpp"
#include "cli/rehearsal.hpp"

namespace lockstep::cli {

struct RehearseRequest;

/// How `scenario` is explored, as the request asks for.
ExploreRequest explore_request(const Scenario& scenario, const RehearseRequest& request);

/// Adds what one exploration covered to what is told of the case.
void add_coverage(Rehearsal& rehearsal, const Explored& explored);

/// Adds the findings that are not known yet; `when` says in which run they came up.
void merge_findings(Rehearsal& rehearsal, std::vector<Finding> more, const std::string& when);

}  // namespace lockstep::cli
