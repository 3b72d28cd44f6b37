#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/cluster/topology.hpp"
#include "model/program/rank_classes.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "properties/rank_set.hpp"
#include "rehearsal/world.hpp"
#include "sim/roofline_cost.hpp"
#include "sim/simulation_options.hpp"
#include "sim/topology_cost.hpp"

namespace lockstep::cli {

/// All kinds: what a world cannot inject, `plan_faults` refuses with its reason.
std::set<FaultKind> every_fault();

/// A rank that a simulated world takes away at a time.
struct LostRank {
  int32_t rank = 0;
  Time at{};
  int32_t number = 0;
};

/// The faults of a scenario as the worlds take them. A number is a fault's place in the scenario,
/// from 0.
struct FaultPlan {
  std::vector<sim::Straggler> stragglers;
  std::vector<LostRank> lost_ranks;
  std::map<int32_t, std::vector<PlannedFault>> planned;  ///< by rank
  /// Number and rank of everything that should strike; -1: a link.
  std::set<std::pair<int32_t, int32_t>> expected;
  Sites sites;  ///< where injected exceptions are raised: the scenario's own fault
  std::vector<Problem> problems;

  /// Those that a simulated world injects by itself, and when its costs change.
  void add_to(sim::SimulationOptions& simulation) const;
  /// Leaves out faults of ranks that others run for.
  void keep_those_that_run(const RankClasses& classes);
  /// Adds those to the faults that struck, where the same has struck the rank that runs for them.
  void add_struck(const RankClasses& classes, std::set<std::pair<int32_t, int32_t>>& struck) const;
};
FaultPlan plan_faults(const Scenario& scenario, const Preparation& preparation, World world);

/// Reports slow links whose ends are not on this cluster.
std::vector<Problem> problems_of_links(const Scenario& scenario, const Cluster& cluster);

/// Slow links need the routes of the finished topology. Both directions of every link on the way
/// between the two ends keep `bandwidth` of their capacity; `latency` is added once a direction, on
/// the way out of the NIC or else on the first link.
std::vector<sim::LinkFault> slow_links(const Scenario& scenario,
                                       sim::TopologyCommunicationCost& communication,
                                       const Cluster& cluster);

/// A note for each fault that took no effect on a rank that it names. `servers` run no trainer.
std::vector<Problem> notes_on_unstruck(const Scenario& scenario, const FaultPlan& plan,
                                       const RunResult& result, const RankSet& servers = {});

}  // namespace lockstep::cli
