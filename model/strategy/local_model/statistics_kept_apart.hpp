#pragma once

#include <string>
#include <vector>

#include "model/strategy/known_difference.hpp"

namespace lockstep {

class Replica;

/// Why each rank has running statistics of batch norm of its own: `cause` says who sends none. Adds
/// nothing for a single rank, or where no layer has any, or where SyncBatchNorm makes them alike.
void add_statistics_kept_apart(Replica& replica, int64_t ranks, const std::string& cause,
                               std::vector<KnownDifference>& known);

}  // namespace lockstep
