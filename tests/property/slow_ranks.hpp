#pragma once

#include <string>

namespace lockstep::test {

/// Perhaps `faults` that slow down some of the ranks, and else nothing. Draws.
std::string drawn_slow_ranks(int ranks, bool has_trainer);

}  // namespace lockstep::test
