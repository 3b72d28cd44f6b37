#pragma once

#include "rehearsal/case_source.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// Where the values of all steps would take too long: runs the first steps once more with values,
/// and adds the findings that need them. The coverage then says up to which step values were
/// computed. Does nothing where values are computed, or cannot be.
void add_first_values(const CaseSource& source, const RehearseRequest& request,
                      Rehearsal& rehearsal);

}  // namespace lockstep::cli
