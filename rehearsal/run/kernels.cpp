#include "rehearsal/run/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/cluster/software.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/kernel_fits.hpp"
#include "sim/cost/kernel_ranges.hpp"

namespace lockstep::cli {

namespace {

// PyTorch reads it (aten/src/ATen/Context.cpp); NVIDIA's containers set it.
constexpr std::string_view tf32_variable = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE";

std::optional<sim::KernelRange> range_of(const sim::KernelMachine& machine,
                                         const Network& network) {
  return sim::kernel_range(software_profile_names()[static_cast<size_t>(machine.software)],
                           sim::convolves(network));
}

std::string sentence_of_kernels(const sim::KernelMachine& machine, const Network* network) {
  const std::span<const sim::KernelFitEntry> fits = sim::kernel_fits();
  const std::string software(software_profile_names()[static_cast<size_t>(machine.software)]);
  if (fits.empty()) {
    return fmt::format("compute: {}, kernels by shape under `{}`; UNCALIBRATED: assumed constants",
                       machine.device.name, software);
  }
  std::string sentence = fmt::format(
      "compute: {}, kernels by shape under `{}`, with constants fitted to {} published "
      "throughputs (docs/kernels.md)",
      machine.device.name, software, fits.front().rows);
  if (const auto range = network == nullptr ? std::nullopt : range_of(machine, *network)) {
    sentence += fmt::format(
        "; measured / predicted time of {} held-out ones of {}{}: {:.2f} to {:.2f} (5 to 95 %)",
        range->rows, range->convolves ? "convolutional networks" : "other networks",
        range->software.empty() ? "" : " under it", range->low, range->high);
  }
  return sentence;
}

// Frameworks that run a graph choose the layout, as torch.compile does.
bool has_channels_last(const Scenario& scenario, SoftwareProfile software) {
  const auto asks = [](const ModelSpec& model) {
    return model.memory_format && model.memory_format->value == MemoryFormat::channels_last;
  };
  return software == SoftwareProfile::graph || software == SoftwareProfile::compiled ||
         (scenario.model &&
          (asks(*scenario.model) ||
           std::ranges::any_of(scenario.model->modules,
                               [&asks](const NamedModel& module) { return asks(module.model); })));
}

}  // namespace

std::optional<sim::KernelMachine> kernel_machine(const Scenario& scenario,
                                                 const DeviceModel& device) {
  const auto asked = std::ranges::find(scenario.versions, "kernels", &LibraryVersion::library);
  const std::optional<KernelChoice> choice =
      asked == scenario.versions.end() ? std::nullopt : kernel_choice(asked->version);
  return choice ? kernel_machine(*choice, scenario, device) : std::nullopt;
}

std::optional<sim::KernelMachine> kernel_machine(const KernelChoice& choice,
                                                 const Scenario& scenario,
                                                 const DeviceModel& device) {
  if (device.compute_capability == 0) {
    return std::nullopt;
  }
  sim::KernelMachine machine;
  machine.device = device;
  machine.software = choice.software;
  machine.constants = choice.without.empty() ? sim::fitted_kernel_constants()
                                             : sim::kernel_constants_without(choice.without);
  machine.tf32_products = std::ranges::any_of(scenario.env, [](const EnvironmentVariable& each) {
    return each.name == tf32_variable && each.value == "1";
  });
  machine.channels_last = has_channels_last(scenario, choice.software);
  return machine;
}

std::optional<sim::KernelMachine> kernels_of(const Scenario& scenario, const Machine& machine,
                                             const sim::CostOptions& options) {
  auto kernels = options.calibration != nullptr || machine.is_flat
                     ? std::nullopt
                     : kernel_machine(scenario, machine.cluster.node.device);
  if (kernels) {
    kernels->gpus = int64_t{options.world_size} * options.devices_per_rank;
  }
  return kernels;
}

void add_fitted_range(Prediction& prediction, const sim::KernelMachine& machine,
                      const Network& network) {
  const std::optional<sim::KernelRange> range = range_of(machine, network);
  if (!range) {
    return;
  }
  const auto scaled = [](Time time, double factor) {
    return Time(std::llround(static_cast<double>(time.count()) * factor));
  };
  const double low = std::min(1.0, range->low);
  const double high = std::max(1.0, range->high);
  prediction.total_time_low = scaled(prediction.total_time, low);
  prediction.total_time_high = scaled(prediction.total_time, high);
  if (prediction.step_time) {
    prediction.step_time_low = scaled(*prediction.step_time, low);
    prediction.step_time_high = scaled(*prediction.step_time, high);
  }
}

sim::CostsResult costs_with(const std::optional<sim::KernelMachine>& kernels,
                            const Cluster& cluster, const sim::CostOptions& options) {
  if (!kernels) {
    return sim::build_costs(cluster, options);
  }
  sim::CostOptions without_stragglers = options;  // they come in front of the kernels
  without_stragglers.stragglers.clear();
  sim::CostsResult built = sim::build_costs(cluster, without_stragglers);
  sim::Costs& costs = built.costs;
  if (!built.errors.empty()) {
    return built;
  }
  costs.basis.front() = sentence_of_kernels(*kernels, options.network);
  costs.compute =
      std::make_unique<sim::KernelComputeCost>(*kernels, options.network, std::move(costs.compute));
  if (!options.stragglers.empty()) {
    auto slowed =
        std::make_unique<sim::SlowedComputeCost>(std::move(costs.compute), options.stragglers);
    costs.slowed = slowed.get();
    costs.compute = std::move(slowed);
  }
  return built;
}

}  // namespace lockstep::cli
