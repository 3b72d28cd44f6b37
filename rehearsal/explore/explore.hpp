#pragma once

#include <string>
#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/progress.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

struct ExploreRequest {
  World world = World::simulated;
  int64_t schedules_max = 1;  ///< 1: the first schedule alone
  bool lists = true;
  const Deadline* deadline = nullptr;
  std::chrono::milliseconds hang_after{10'000};    ///< of World::processes
  std::chrono::milliseconds join_timeout{60'000};  ///< likewise
  std::optional<int32_t> ranks_max{};              ///< likewise: more are not started
  const RealWorld* real = nullptr;                 ///< of World::processes; null: launch them
  Progress* progress = nullptr;
  int64_t journal_bytes_max = RunRequest().journal_bytes_max;
  DeviceRequest device{};                      ///< of World::processes
  Arithmetic arithmetic = Arithmetic::always;  ///< simulated
  /// One more than 1: the next schedule is run while the findings of another are looked for. The
  /// result does not depend on it.
  int threads = 1;
  Attempt attempt{};  ///< its store is that of the first schedule
  std::optional<KeptSteps> keeps_steps{};
};

/// Combined result of all explored schedules of one scenario.
struct Explored {
  OneRun first;
  Sites sites;                    ///< of all runs
  std::vector<Finding> findings;  ///< each defect once, as the first schedule that has it shows it
  bool hung = false;
  int64_t schedules = 0;
  bool free = false;                  ///< several schedules are possible
  bool complete = true;               ///< every way of what is free was taken
  std::vector<std::string> ways;      ///< what was varied
  std::vector<std::string> left_out;  ///< what is free and was not varied
  std::string undecided;
};

/// Runs a scenario in every order that is really free: both ways of each `unknown`, on each rank
/// apart; each waiting sender of a receive from any source, and each rank late in turn where there
/// are such receives; drawn orders of what happens at the same time where a rank has several lanes.
/// Everything else is in the same order in every run, because collectives and messages match by
/// position. Breadth first: fewest deviations from the usual way first.
Explored explore(const Scenario& scenario, const ExploreRequest& request);

}  // namespace lockstep::cli
