#pragma once

#include <vector>

#include "properties/divergence.hpp"

namespace lockstep {

/// Of divergences in the order of their rows those that no other causes; each of the others becomes
/// an echo of its cause. One causes another when a rank of both had come past it before, when the
/// same decision separated the ranks, or when the same rank was cut short. Of two that seem to
/// cause each other the earlier stays.
std::vector<Divergence> without_echoes(const Journal& journal, const std::vector<Divergence>& all);

/// Folds divergences of groups without common members that differ at one statement alike: a
/// statement that is wrong in every data-parallel group is one defect.
std::vector<Divergence> without_twins(const std::vector<Divergence>& all);

}  // namespace lockstep
