#pragma once

#include <vector>

#include "properties/diagnosis/divergence.hpp"

namespace lockstep {

/// Folds divergences of groups without common members that differ at one statement alike: a
/// statement that is wrong in every data-parallel group is one defect.
std::vector<Divergence> without_twins(const std::vector<Divergence>& all);

/// Drops divergences that an earlier one causes, and makes each an echo of its cause; the others
/// stay in the order of their rows. `a` causes `b` if a rank of both had passed `a` before, if the
/// same decision separated the ranks, or if the same rank was cut short. Of two that seem to cause
/// each other the earlier is kept.
std::vector<Divergence> without_echoes(const Journal& journal, const std::vector<Divergence>& all);

}  // namespace lockstep
