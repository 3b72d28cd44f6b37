#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "backend/gloo/fleet.hpp"
#include "properties/finding.hpp"
#include "rehearsal/launch/fleet.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::test {

/// What came of one scenario in all worlds.
struct Agreement {
  std::vector<std::string> failures;  ///< empty: all worlds did the same
  std::vector<std::string> findings;  ///< codes
  bool hung = false;
  bool bit_for_bit = true;  ///< the values of LibTorch and of the simulation
  int64_t operations = 0;
};

/// One case of a scenario, from a text or from a file.
struct Asked {
  std::string text{};  ///< empty: the file is read
  std::string path = "scenario.yaml";
  std::string scenario_case{};
  std::vector<std::string> set{};
};
Scenario load_scenario(const Asked& asked);

/// The simulated world, threads over Gloo, and rank programs over LibTorch and Gloo that stay up.
class ThreeWorlds {
 public:
  explicit ThreeWorlds(std::chrono::milliseconds deadline);

  /// Runs the scenario by LibTorch, by threads and in the simulator, which are given the choices of
  /// the first, and holds journals, values, memory, endings and findings against each other by the
  /// rules of `lockstep compare`.
  Agreement judge(const Asked& asked);

  cli::OneRun run_processes(const Scenario& scenario, const Asked& asked,
                            std::chrono::milliseconds deadline);
  cli::OneRun run_threads(const Scenario& scenario, const Journal* choices,
                          std::chrono::milliseconds deadline);
  cli::RankFleet& fleet() { return fleet_; }
  const cli::RankFleet& fleet() const { return fleet_; }

 private:
  std::chrono::milliseconds deadline_;
  cli::RankFleet fleet_;
  backend::Fleet threads_;
};

/// Where the simulation of the scenario, which is given the run's choices, differs from the run.
/// `exact`: values must be equal bit for bit.
std::vector<std::string> differences_from_simulation(const Scenario& scenario,
                                                     const cli::OneRun& real, bool exact,
                                                     bool* bit_for_bit = nullptr);

}  // namespace lockstep::test
