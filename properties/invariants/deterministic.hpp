#pragma once

#include <vector>

#include "model/program/run.hpp"

namespace lockstep {

/// The first differences between two runs of the same scenario and seed: rows of the journals, then
/// times and outcomes of operations, then how ranks ended. Empty when the runs were the same.
std::vector<JournalDifference> deterministic(const RunResult& left, const RunResult& right,
                                             size_t limit = 1);

}  // namespace lockstep
