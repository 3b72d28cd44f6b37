#include "rehearsal/elastic/attempt_scenario.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::cli {

namespace {

void start_nodes(Object& launcher, int64_t nodes) {
  const auto given = std::ranges::find(launcher.arguments, "nnodes", &ObjectArgument::name);
  if (given == launcher.arguments.end()) {
    launcher.arguments.push_back({"nnodes", PlainValue{nodes, launcher.place}, launcher.place});
  } else {
    given->value = PlainValue{nodes, given->place};
  }
}

// False: it cannot strike this attempt.
bool move_fault(const ElasticWorld& world, Time began, FaultSpec& fault) {
  if (fault.at && fault.at->value.kind == Instant::Kind::time && !fault.at->value.is_start()) {
    Time& at = fault.at->value.time;
    if (at < began) {
      return false;  // while no rank ran
    }
    at -= began;
  }
  if (fault.kind == FaultKind::lost_node && fault.node) {
    const auto found = std::ranges::find(world.nodes, fault.node->value);
    if (found == world.nodes.end()) {
      return false;
    }
    fault.node->value = found - world.nodes.begin();
  }
  return true;
}

}  // namespace

AttemptScenario first_attempt(const Scenario& whole) {
  AttemptScenario first{whole, std::vector<size_t>(whole.faults.size())};
  std::iota(first.faults.begin(), first.faults.end(), size_t{0});
  return first;
}

AttemptScenario later_attempt(const Scenario& whole, const ElasticWorld& world,
                              const std::set<size_t>& past_faults, Time began) {
  AttemptScenario later{whole, {}};
  const auto nodes = static_cast<int64_t>(world.nodes.size());
  start_nodes(*later.scenario.launcher, nodes);
  Given<int64_t>& asked = later.scenario.trainer->num_nodes;
  if (asked && asked->value == TrainerSpec::nodes_of_launcher) {
    asked->value = nodes;
  }
  later.scenario.faults.clear();
  for (size_t number = 0; number < whole.faults.size(); ++number) {
    FaultSpec fault = whole.faults[number];
    if (!past_faults.contains(number) && move_fault(world, began, fault)) {
      later.scenario.faults.push_back(std::move(fault));
      later.faults.push_back(number);
    }
  }
  return later;
}

}  // namespace lockstep::cli
