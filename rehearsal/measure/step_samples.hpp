#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/trainer/logging/run_log.hpp"

namespace lockstep::cli {

/// Of the steps that a rank takes itself.
std::vector<int64_t> samples_of_own_steps(const RankLog& log);

/// The samples of each step of rank 0, over all ranks; of a number of steps that the ranks'
/// programs did not count, their average; one that is under way has none. Empty where no rank
/// counted any.
std::vector<int64_t> samples_of_steps(const RunLog& log, size_t steps);

}  // namespace lockstep::cli
