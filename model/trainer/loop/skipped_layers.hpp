#pragma once

#include <vector>

#include "model/network/network.hpp"
#include "model/scenario/statement.hpp"
#include "model/trainer/logging/run_log.hpp"

namespace lockstep {

/// The layers that `skip` of a `forward` names, ascending. `modules`: those that run. Ends the
/// program where a name has no layer, or where what is left does not fit together.
std::vector<size_t> skipped_layers(const Statement& statement, const Network& network,
                                   const std::vector<size_t>& modules, RankLog& log);

}  // namespace lockstep
