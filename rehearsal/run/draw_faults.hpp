#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Faults that this world can inject into this scenario, drawn from a seed: each as the object that
/// is written in a scenario's list (`{lost_rank: {rank: 1, at: step 3}}`). `healthy` is a run of
/// the scenario without faults; where it ran to its end, faults fall within it.
std::vector<std::string> draw_faults(const OneRun& healthy, World world, uint64_t seed,
                                     int64_t count);

/// The drawn faults as `--set` takes them.
std::string setting_of_faults(const std::vector<std::string>& faults);

}  // namespace lockstep::cli
