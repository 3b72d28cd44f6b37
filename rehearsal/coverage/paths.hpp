#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// What a simulated case went through, as one number for each thing, ascending and each once: the
/// calls that its ranks made (operation, type, the step of the strategy or the hook and statement
/// that asked for it, on which kind of lane, group and stream), the kinds of layers that it
/// computed, the name of its strategy and of every argument, its faults, and what was found. Two
/// cases with the same paths ask nothing of a real world that differs but in sizes and numbers.
std::vector<uint64_t> paths_of(const Rehearsal& simulated);

/// The positions of cases that together have all paths of all cases, ascending. Always the same for
/// the same paths: the case that adds most comes first, of equals the earlier one. A case with no
/// paths at all, because it did not run, is among them: nothing is known of it.
std::vector<size_t> covering_cases(const std::vector<std::vector<uint64_t>>& paths);

}  // namespace lockstep::cli
