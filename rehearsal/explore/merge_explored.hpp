#pragma once

#include <string>
#include <vector>

#include "rehearsal/explore/explore.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

struct RehearseRequest;

/// How `scenario` is explored, as the request asks for.
ExploreRequest explore_request(const Scenario& scenario, const RehearseRequest& request);

/// Adds what one exploration covered to the coverage of the case.
void add_coverage(Rehearsal& rehearsal, const Explored& explored);

}  // namespace lockstep::cli
