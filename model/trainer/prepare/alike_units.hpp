#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/rank_classes.hpp"

namespace lockstep {

struct NodePlaces {
  int32_t ranks_per_node = 1;
  int32_t ranks_per_host_link = 1;  ///< that follow one another
};

/// Ranks are of one class where they have the same place in units that are alike. A unit is whole
/// nodes that hold whole neighbourhoods, so that whatever ranks share or exchange among a few of
/// them lies within one; units are alike where the ranks at each of their places are.
///
/// Columns of a neighbourhood are alike where their ranks are, one after the other, are on the same
/// nodes, and share their links to the host with ranks that are.
///
/// `numbers`: by rank, the same for ranks that are alike by themselves, from 0 on in the order of
/// their first ranks; whole nodes of them. Nothing: the first ranks
/// of the classes are not in the first units, or not in the first columns.
std::optional<RankClasses> alike_units(const std::vector<uint32_t>& numbers,
                                       const NodePlaces& places, Neighbourhoods neighbourhoods);

}  // namespace lockstep
