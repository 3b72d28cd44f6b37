#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/core/units.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What simulating many ranks that all differ will take of this machine, about.
struct RunForecast {
  int64_t ranks = 0;       ///< each simulated
  int64_t operations = 0;  ///< of all of them
  double seconds = 0;      ///< of processor time
  Bytes memory{};
};

/// `operations_of_rank`: those that a simulation of one of these ranks counts, with what repeats
/// left out. The costs of an operation are those of GPT-2 XL on 4,096 ranks in
/// docs/performance.md, and no promise: machines differ.
RunForecast forecast(int64_t ranks, int64_t operations_of_rank);

/// "4096 ranks differ, so each is simulated: about 36 M operations, 55 s and 3.8 GiB".
std::string text_of(const RunForecast& forecast);

/// Ranks that a simulation runs: the others do what one of these does.
int64_t simulated_ranks(const OneRun& run);

/// Reports what a run will take, if many ranks differ by the scenario's faults and somebody follows
/// its progress. The run is prepared and has not begun. Nothing is said of one that keeps lists of
/// operations or computes values.
void tell_forecast(const OneRun& run, const Scenario& scenario, const RunRequest& request);

}  // namespace lockstep::cli
