#pragma once

#include "properties/diagnosis/diagnosis.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Who ends the other processes once a rank has failed, before any time limit: Lightning's launcher
/// (from 2.1 on, if it is no first process of a node that failed) or torchrun.
void tell_launcher(const OneRun& run, DiagnosisOptions& options);

}  // namespace lockstep::cli
