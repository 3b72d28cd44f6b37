#pragma once

#include "model/strategy/argument_table.hpp"
#include "model/strategy/exchange/reducer.hpp"

namespace lockstep {

/// What torch's DistributedDataParallel does when it is made: all ranks gather how many parameters
/// each has, and compare their shapes with rank 0's.
Program verify_parameters(Rank& rank, const Replica& replica);
/// The same over `ranks` ranks of a group.
Program verify_parameters(Rank& rank, const Replica& replica, ReducingGroup group, int32_t ranks);

/// Parameters, and with `buffers` what else the module holds: what rank 0 sends then.
std::vector<Slice> module_state_of(const Replica& replica, bool buffers);

/// Arguments of a scenario that the reducer takes.
ReducerOptions reducer_options_from(const StrategyArgumentReader& read);

}  // namespace lockstep
