// Alone in its folder, and so in its object file, so that a linker leaves it in the archive where a
// program defines its own.
#include "model/strategy/registry.hpp"

namespace lockstep {

std::vector<StrategyEntry> additional_strategies() { return {}; }

}  // namespace lockstep
