#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/rank_classes.hpp"

namespace lockstep {

/// Ranks are of one class where they have the same place in units that are alike. A unit is whole
/// nodes that hold whole neighbourhoods, so that whatever ranks share or exchange among a few of
/// them lies within one; units are alike where the ranks at each of their places are.
///
/// `numbers`: by rank, the same for ranks that are alike by themselves, from 0 on in the order of
/// their first ranks; a multiple of `ranks_per_node` (at least 1) of them. `neighbourhoods`: by
/// rank; empty: there are none. Nothing: the first ranks of the classes are not in the first units.
std::optional<RankClasses> alike_units(const std::vector<uint32_t>& numbers, int32_t ranks_per_node,
                                       const std::vector<int32_t>& neighbourhoods);

}  // namespace lockstep
