#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace lockstep {

/// A scenario in which every default of the format is filled, and what was assumed for it: each
/// line says one thing that the user did not, for the `basis` of a prediction.
struct ResolvedScenario {
  Scenario scenario;
  std::vector<std::string> assumptions;
};

/// Fills what the scenario leaves open and what no version of Lightning decides: the machine, the
/// model, the data, the optimizer, the process group. Arguments of `Trainer` stay as they are:
/// their defaults depend on the version. A loader inherits the keys directly under `data` first.
/// Filled values have a place without a line. A bare program keeps its sections empty.
ResolvedScenario with_defaults(Scenario scenario);

/// The preset of the machine that is assumed where a scenario names none: that of its GPU, if it
/// names a GPU.
std::string assumed_cluster(const Scenario& scenario);

}  // namespace lockstep
