// Alone in its object file (LOCKSTEP_REPLACEABLE in cmake/settings.cmake), so that a linker leaves
// it in the archive where a program defines its own.
#include "model/strategy/registry.hpp"

namespace lockstep {

std::vector<StrategyEntry> additional_strategies() { return {}; }

}  // namespace lockstep
