#pragma once

#include <optional>

#include "model/cluster/software.hpp"
#include "model/scenario/scenario.hpp"
#include "rehearsal/results.hpp"
#include "rehearsal/run/machine.hpp"
#include "sim/build_costs.hpp"
#include "sim/cost/kernel_price.hpp"

namespace lockstep::cli {

/// What prices kernels if the scenario asks for it by `versions.kernels`; nothing: data sheets do.
std::optional<sim::KernelMachine> kernel_machine(const Scenario& scenario,
                                                 const DeviceModel& device);
/// The same by this choice, whatever the scenario asks for.
std::optional<sim::KernelMachine> kernel_machine(const KernelChoice& choice,
                                                 const Scenario& scenario,
                                                 const DeviceModel& device);
/// The same for a run with these options; nothing where a calibration or a flat machine prices its
/// kernels.
std::optional<sim::KernelMachine> kernels_of(const Scenario& scenario, const Machine& machine,
                                             const sim::CostOptions& options);

/// Costs with kernels by shape in place of the roofline; without `kernels` as they are.
sim::CostsResult costs_with(const std::optional<sim::KernelMachine>& kernels,
                            const Cluster& cluster, const sim::CostOptions& options);

/// The range of a prediction whose kernels were fitted: what measured steps of held-out sources
/// took of the predicted time, 5 to 95 %. Nothing where nothing was fitted.
void add_fitted_range(Prediction& prediction, const sim::KernelMachine& machine,
                      const Network& network);

}  // namespace lockstep::cli
