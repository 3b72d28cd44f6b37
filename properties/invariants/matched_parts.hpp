#pragma once

#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// Checks that messages match (LS104): a message has the size and dtype of its receive, and
/// of an uneven all_to_all the part that one rank sends to another is the part that this one
/// expects. One finding per pair of statements, its first case. The last of `follows` is the
/// consequence, with Gloo as torch 2.11 behaves on CPUs.
std::vector<Finding> matched_parts(const RunResult& run, bool over_gloo = false);

}  // namespace lockstep
