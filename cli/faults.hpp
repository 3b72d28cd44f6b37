#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cli/request.hpp"
#include "model/cluster/topology.hpp"
#include "model/trainer/prepare.hpp"
#include "sim/engine.hpp"
#include "sim/roofline_cost.hpp"
#include "sim/topology_cost.hpp"

namespace lockstep::cli {

/// The kinds of fault that this world can inject from outside of the program.
std::set<FaultKind> faults_of(World world);

/// The faults of a scenario as the simulator takes them.
struct FaultPlan {
  std::vector<sim::Straggler> stragglers;
  std::vector<std::pair<int32_t, Time>> lost_ranks;
  std::map<int32_t, std::vector<PlannedFault>> planned;
  std::vector<Problem> problems;
};
FaultPlan plan_faults(const Scenario& scenario, const Preparation& preparation);

/// Slow links need the routes of the finished topology. Both directions of every link on the way
/// between the two ends keep `bandwidth` of their capacity.
std::vector<sim::LinkFault> slow_links(const Scenario& scenario,
                                       const sim::TopologyCommunicationCost& communication,
                                       const Cluster& cluster);

}  // namespace lockstep::cli
