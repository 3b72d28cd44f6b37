#pragma once

#include <set>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "rehearsal/elastic/launcher_rule.hpp"

namespace lockstep::cli {

/// What the ranks of one attempt are started with.
struct AttemptScenario {
  Scenario scenario;
  std::vector<size_t> faults;  ///< for each of its faults, its place in the whole scenario
};

AttemptScenario first_attempt(const Scenario& whole);
/// On the nodes of `world`, from `began` on after the start of the job. A fault that has struck
/// does not strike again; one of a node that takes no part does not strike.
AttemptScenario later_attempt(const Scenario& whole, const ElasticWorld& world,
                              const std::set<size_t>& past_faults, Time began);

}  // namespace lockstep::cli
