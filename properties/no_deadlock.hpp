#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "properties/wait_graph.hpp"

namespace lockstep {

/// Nobody waits for ever. One finding a reason: a circle of waiting (LS103 within one communicator,
/// LS106 over several, LS107 between messages, LS108 when buffered sends would have ended it), or
/// something that never comes (LS101). What merely waits for such a reason is a consequence.
std::vector<Finding> no_deadlock(const RunResult& run);

/// No run that ended depends on sends that return before they are received (LS108, a warning).
std::vector<Finding> no_buffering_hazard(const RunResult& run);

/// "ranks 1-7 wait in barrier (call 9 of group world)": all that waits at the end of a hung run,
/// ranks that wait alike together, at most `limit` sentences.
std::vector<std::string> waiting_text(const RunResult& run, size_t limit);

}  // namespace lockstep
