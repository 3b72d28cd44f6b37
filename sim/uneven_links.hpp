#pragma once

#include <span>
#include <vector>

#include "model/program/rank_classes.hpp"
#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// Links on whose nodes ranks run that stand for those of other nodes, and that a pattern between
/// `members` crosses more or less often than the same links of these other nodes. Ascending. None
/// where all members run. A transfer that is simulated on one node for all of them shares such a
/// link otherwise than they do.
std::vector<LinkIndex> uneven_links(const TrafficPattern& pattern, std::span<const int32_t> members,
                                    const Topology& topology, const Placement& placement,
                                    const RankClasses& classes);

}  // namespace lockstep::sim
