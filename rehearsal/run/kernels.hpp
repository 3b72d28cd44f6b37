#pragma once

#include <optional>

#include "model/scenario/scenario.hpp"
#include "sim/build_costs.hpp"
#include "sim/cost/kernel_price.hpp"

namespace lockstep::cli {

/// What prices kernels if the scenario asks for it by `versions.kernels`; nothing: data sheets do.
std::optional<sim::KernelMachine> kernel_machine(const Scenario& scenario,
                                                 const DeviceModel& device);

/// Costs with kernels by shape in place of the roofline; without `kernels` as they are.
sim::CostsResult costs_with(const std::optional<sim::KernelMachine>& kernels,
                            const Cluster& cluster, const sim::CostOptions& options);

}  // namespace lockstep::cli
