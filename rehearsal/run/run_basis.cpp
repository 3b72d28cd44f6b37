#include "rehearsal/run/run_basis.hpp"

#include <fmt/format.h>

namespace lockstep::cli {

std::vector<std::string> basis_of(const Machine& machine, const sim::Costs& costs) {
  if (machine.is_flat) {
    return {"network: bandwidth and latency from the scenario, the same for every pair",
            "compute: times from the scenario; flops and bytes by the cpu preset, "
            "UNCALIBRATED",
            machine.algorithms == sim::CollectiveAlgorithms::tree
                ? "collectives: double binary trees for all_reduce, else rings"
                : "collectives: rings, by latency and bandwidth alone"};
  }
  std::vector<std::string> basis = machine.assumptions;
  basis.insert(basis.end(), costs.basis.begin(), costs.basis.end());
  return basis;
}

// Describes the measurements, if there are any, and what they lack.
void tell_calibration(OneRun& run, const NamedCalibration& named, const sim::Costs& costs) {
  if (!named.calibration) {
    return;
  }
  CalibrationUse use{named.file, named.calibration->origin, costs.ranks_on_node, {}};
  for (const auto& lacking :
       {costs.measured_compute->not_measured(), costs.measured_communication->not_measured()}) {
    use.not_measured.insert(use.not_measured.end(), lacking.begin(), lacking.end());
  }
  run.basis.insert(run.basis.begin(), "calibrated on " + text_of(use));
  if (!use.not_measured.empty()) {
    run.basis.push_back(
        fmt::format("not measured, and outside the range: {}", fmt::join(use.not_measured, ", ")));
  }
  run.calibration = std::move(use);
}

}  // namespace lockstep::cli
