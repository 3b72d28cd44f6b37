#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/calibration.hpp"
#include "rehearsal/run/machine.hpp"
#include "sim/build_costs.hpp"

namespace lockstep::cli {

/// The calibration that a run's times are based on.
struct CalibrationUse {
  std::string file;  ///< its name without folders
  CalibrationOrigin origin{};
  int32_t ranks_on_node = 1;              ///< of this run
  std::vector<std::string> not_measured;  ///< "conv2d layer_backward": priced by data sheets
};
/// "AMD EPYC, 2 ranks, 2026-11-22 (this-machine.json)".
std::string text_of(const CalibrationUse& use);

/// The calibration that a scenario names, and why it cannot be used.
struct NamedCalibration {
  std::shared_ptr<const Calibration> calibration;  ///< null: it names none, or there are problems
  std::string file;
  std::vector<Problem> problems;
};
/// Reads it from the folder of the file that names it, or of the working directory where the
/// command line does. It must be of the machine's kind of device; a machine that is a network alone
/// has none.
NamedCalibration calibration_of(const Scenario& scenario, const Machine& machine);

/// The path of the calibration that the scenario names; empty: it names none.
std::string calibration_file(const Scenario& scenario);

/// The preset whose device this is, by the name that its driver gives ("NVIDIA H100 80GB HBM3");
/// empty where there is none.
std::string preset_of_gpu(const std::string& name);

}  // namespace lockstep::cli
