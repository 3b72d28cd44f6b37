#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/trainer/prepare/placement.hpp"

namespace lockstep {

/// What a training that is tried under another strategy needs to have the same processes on the
/// same nodes.
struct ComparedLaunch {
  std::string by{};                     ///< "horovodrun" or "Lightning"; empty: as it was
  std::vector<std::string> settings{};  ///< KEY=VALUE
};

/// Horovod's processes are counted by horovodrun or mpirun, and `num_nodes` is refused; Lightning
/// counts those of others by `devices` and `num_nodes`, and no launcher can have started what it
/// spawns. `scenario` and `placement`: under the strategy to try; `as_written`: of the scenario
/// itself.
ComparedLaunch launch_to_compare(const Scenario& scenario, const Placement& placement,
                                 const Placement& as_written);

}  // namespace lockstep
