#pragma once

#include <string>
#include <vector>

#include "model/program/run.hpp"

namespace lockstep {

/// "ranks 1-7 wait in barrier (call 9 of group world)": all that waits at the end of a hung run,
/// ranks that wait alike together, at most `limit` sentences.
std::vector<std::string> waiting_text(const RunResult& run, size_t limit);

}  // namespace lockstep
