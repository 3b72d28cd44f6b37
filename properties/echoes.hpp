#pragma once

#include <vector>

#include "properties/divergence.hpp"

namespace lockstep {

/// Drops divergences that an earlier one causes, and makes each an echo of its cause; the others
/// stay in the order of their rows. `a` causes `b` if a rank of both had passed `a` before, if the
/// same decision separated the ranks, or if the same rank was cut short. Of two that seem to cause
/// each other the earlier is kept.
std::vector<Divergence> without_echoes(const Journal& journal, const std::vector<Divergence>& all);

}  // namespace lockstep
