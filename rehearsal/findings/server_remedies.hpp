#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Where ranks wait in a call of a parameter server, puts what helps there in the place of the
/// general advice.
void complete_server_remedies(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
