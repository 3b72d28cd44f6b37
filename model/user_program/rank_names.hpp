#pragma once

#include <optional>
#include <string_view>

#include "model/core/place.hpp"
#include "model/core/ranks_of_nodes.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

/// `rank`, `world_size`, `local_rank`, `node_rank`, `is_global_zero` of a place; nothing for
/// others.
std::optional<Value> name_of_rank(std::string_view name, const Place& place);

/// Of another rank of the same run, whose nodes have `nodes` ranks, or as many as that of `own`.
Place place_of_other(const Place& own, const RanksOfNodes& nodes, int32_t other);

}  // namespace lockstep
