#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/trainer/logging/run_log.hpp"

namespace lockstep::cli {

/// The samples of each step, over all ranks; of a number of steps that the ranks' programs did not
/// count, their average. Empty where no rank counted any.
std::vector<int64_t> samples_of_steps(const RunLog& log, size_t steps);

}  // namespace lockstep::cli
