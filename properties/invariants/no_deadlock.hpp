#pragma once

#include <vector>

#include "properties/diagnosis/wait_graph.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// Nobody waits forever. One finding per reason: a circle of waiting (LS103 within one
/// communicator, LS106 over several, LS107 between messages, LS108 if buffered sends would have
/// ended it), or something that never comes (LS101). Further waiting is a consequence.
std::vector<Finding> no_deadlock(const RunResult& run);

/// No run that ended depends on sends that return before they are received (LS108, a warning).
std::vector<Finding> no_buffering_hazard(const RunResult& run);

}  // namespace lockstep
