#pragma once

#include <functional>
#include <vector>

#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// Notes in the pattern of a group of one column what the same groups of the other columns for
/// which it stands take of its links (TrafficPattern::with_columns). False: these do not cross
/// links of the same capacities as it does, or not for as long.
bool add_other_columns(const std::vector<TrafficPattern>& others,
                       const std::vector<BytesPerSecond>& capacities, TrafficPattern& pattern);

/// Of a group that has all columns of its neighbourhoods: the links of nodes on which it does not
/// cross links of one capacity alike, and as many of them for each of its members there. The links
/// of a node follow one another.
std::vector<LinkIndex> links_uneven_between_columns(
    const TrafficPattern& pattern, const std::vector<BytesPerSecond>& capacities,
    int64_t links_per_node, const std::function<size_t(int64_t)>& members_on);

}  // namespace lockstep::sim
