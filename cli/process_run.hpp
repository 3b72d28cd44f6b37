#pragma once

#include "cli/one_run.hpp"

namespace lockstep::cli {

/// Runs a prepared scenario with a process a rank on this host, on the device that was asked for,
/// or takes what `request.real` brings. `counted`: its simulation, which says how much memory it
/// needs. What keeps it from running is among the run's problems.
void run_on_processes(OneRun& run, const RunRequest& request, const OneRun& counted,
                      const ProgramOfRank& program);

}  // namespace lockstep::cli
