#pragma once

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// A missing capability, and how to install it.
struct Lack {
  std::string problem;  ///< empty: nothing is missing
  std::string remedy;
};
/// Whether a rank program is installed (its path is not empty), and this host takes so many of it.
Lack lack_of_rank_programs(const std::string& program, int32_t ranks,
                           const std::string& remedy_for_too_many);

/// What of a prepared scenario no rank program can do, on whatever host.
Lack unknown_to_rank_programs(const OneRun& run);

/// Refuses such a scenario, more ranks than this host takes, or where the rank program is missing:
/// true, and the reason is among the run's problems.
bool refuses_processes(OneRun& run);

/// Runs a prepared scenario with one process per rank on this host, on the device that was asked
/// for, or takes what `request.real` holds. `counted`: its simulation, which says how much memory
/// it needs. What keeps it from running is among the run's problems.
void run_on_processes(OneRun& run, const RunRequest& request, const OneRun& counted,
                      const ProgramOfRank& program);

}  // namespace lockstep::cli
