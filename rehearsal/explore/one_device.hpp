#pragma once

#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// Whether a comparison with one device would say something of this run.
bool wants_one_device(const Rehearsal& rehearsal);

/// Runs the same training on one device, which takes the batches of all ranks: LS306 for
/// parameters, and what logged values are judged by. What it cannot judge, and why, goes to the
/// coverage.
void compare_with_one_device(const CaseSource& source, const RehearseRequest& request,
                             Rehearsal& rehearsal);

}  // namespace lockstep::cli
