#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Of a run under Horovod that has ended: what Horovod has raised, which raised_findings() gives as
/// it is, becomes a finding that names tensors, ranks and cause, or a consequence of another one.
void tell_horovod_exceptions(const OneRun& run, std::vector<Finding>& findings);

}  // namespace lockstep::cli
