#pragma once

#include <string>

namespace lockstep::test {

/// Perhaps `faults` that strike some of the ranks, or links between nodes, and else nothing. Draws.
/// `nodes`: 0 where the ranks are on none. `always`: never nothing.
std::string drawn_faults(int ranks, int nodes, bool has_trainer, bool always = false);

}  // namespace lockstep::test
