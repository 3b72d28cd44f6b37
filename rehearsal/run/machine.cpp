#include "rehearsal/run/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/presets.hpp"
#include "model/core/version.hpp"

namespace lockstep::cli {

namespace {

constexpr auto dtypes = {DType::fp64,  DType::fp32,  DType::bf16, DType::fp16,
                         DType::int64, DType::int32, DType::uint8};

/// Ranks and a network, and nothing of a machine.
bool is_flat(const Scenario& scenario) {
  if (!scenario.is_bare_program()) {
    return false;
  }
  const ClusterSpec& spec = *scenario.cluster;
  return spec.network && spec.network->bandwidth && !spec.preset && !spec.gpu && !spec.nvlink &&
         !spec.pcie && !spec.nodes && !spec.gpus;
}

void set_speeds(DeviceModel& device, const GpuSpec& spec) {
  for (const DeviceFlops& flops : spec.flops) {
    if (flops.dtype == "achieved") {
      for (const DType dtype : dtypes) {
        device.speeds[static_cast<size_t>(dtype)] = ComputeSpeed{flops.rate, {}};
      }
      device.tf32 = std::nullopt;
      device.assumption.clear();
    } else if (const std::optional<DType> dtype = dtype_named(flops.dtype)) {
      auto& speed = device.speeds[static_cast<size_t>(*dtype)];
      const EfficiencyCurve efficiency = speed ? speed->efficiency : EfficiencyCurve{0.8, {}};
      speed = ComputeSpeed{flops.rate, efficiency};
    }
  }
}

// What the scenario changes is no longer what the preset names.
void name_own_figures(DeviceModel& device, const GpuSpec& spec) {
  std::vector<std::string> own;
  if (spec.memory) {
    own.emplace_back("memory");
  }
  if (spec.memory_bandwidth) {
    own.emplace_back("memory_bandwidth");
  }
  if (!spec.flops.empty()) {
    own.emplace_back("flops");
  }
  if (own.size() == 3 && !spec.preset) {
    device.name = "the scenario's GPU";
    device.source = "as the scenario states them";
  } else if (!own.empty()) {
    device.source += fmt::format("; {} as the scenario states", fmt::join(own, ", "));
    device.name += fmt::format(" with own {}", fmt::join(own, ", "));
  }
}

void apply_gpu(Machine& machine, const GpuSpec& spec) {
  DeviceModel& device = machine.cluster.node.device;
  if (spec.preset) {
    if (const std::optional<DeviceModel> known = device_preset(spec.preset->value)) {
      device = *known;
    }
  }
  if (spec.memory) {
    device.memory = spec.memory->value;
  }
  if (spec.memory_bandwidth) {
    device.memory_bandwidth = spec.memory_bandwidth->value;
  }
  set_speeds(device, spec);
  name_own_figures(device, spec);
}

template <class Target, class Source>
void override_with(Target& target, const Given<Source>& given) {
  if (given) {
    target = static_cast<Target>(given->value);
  }
}

// A card in the place of the GPU that the machine was made for brings no NVLink.
void leave_out_nvlink(Machine& machine, const ClusterSpec& spec) {
  NodeModel& node = machine.cluster.node;
  const bool named = spec.gpu && spec.gpu->preset && device_preset(spec.gpu->preset->value);
  if (named && !spec.nvlink && node.nvlink > BytesPerSecond{} &&
      !has_nvlink(spec.gpu->preset->value)) {
    machine.assumptions.push_back(
        fmt::format("links: {} has no NVLink, so {} is taken without; cluster.nvlink sets it",
                    spec.gpu->preset->value, node.name));
    node.nvlink = BytesPerSecond{};
    node.nvlinks = 0;
    node.nvlink_pairs.clear();
  }
}

void apply_spec(Machine& machine, const ClusterSpec& spec) {
  Cluster& cluster = machine.cluster;
  NodeModel& node = cluster.node;
  if (spec.gpu) {
    apply_gpu(machine, *spec.gpu);
  }
  leave_out_nvlink(machine, spec);
  override_with(node.devices, spec.gpus);
  if (spec.gpus && !node.nvlink_pairs.empty() && node.devices != 8) {
    node.nvlink_pairs.clear();
    machine.assumptions.push_back("links: with a different number of GPUs, all NVLinks meet");
  }
  override_with(node.nvlink, spec.nvlink);
  if (spec.nvlink) {
    node.nvlink_pairs.clear();
    node.nvlinks = spec.nvlink->value > BytesPerSecond{} ? std::max(1, node.nvlinks) : 0;
  }
  override_with(node.pcie, spec.pcie);
  override_with(node.nics, spec.nics);
  override_with(node.cpu_cores, spec.cpu_cores);
  override_with(node.memory, spec.memory);
  override_with(node.disk, spec.disk);
  if (spec.nvme) {
    override_with(node.nvme.size, spec.nvme->size);
    override_with(node.nvme.read, spec.nvme->read);
    override_with(node.nvme.write, spec.nvme->write);
    override_with(node.latencies.drive, spec.nvme->latency);
  }
  if (spec.network) {
    override_with(cluster.network.bandwidth, spec.network->bandwidth);
    override_with(cluster.network.latency, spec.network->latency);
    override_with(cluster.network.oversubscription, spec.network->oversubscription);
    if (spec.network->fabric && spec.network->fabric->value != cluster.network.fabric) {
      constexpr Time of_efa = 75_us;  // what its plugin reports on most machines
      cluster.network.fabric = spec.network->fabric->value;
      cluster.network.nic_latency = cluster.network.fabric == Fabric::efa ? of_efa : Time{};
    }
  }
  for (const Placed<int64_t>& place : spec.occupied) {
    cluster.occupied.push_back(static_cast<int>(place.value));
  }
}

// Ranks use the GPUs that `devices` names, so those between them stay unused.
void leave_out_unused(Cluster& cluster, const Preparation& preparation) {
  const Placement& placement = preparation.placement;
  const std::vector<int64_t>& used = placement.devices;
  const auto last = std::max_element(used.begin(), used.end());
  if (placement.cpu || last == used.end() || *last >= cluster.node.devices) {
    return;
  }
  cluster.occupied.clear();
  for (int64_t place = 0; place < cluster.node.devices; ++place) {
    if (place < *last && std::find(used.begin(), used.end(), place) == used.end()) {
      cluster.occupied.push_back(static_cast<int>(place));
    }
  }
}

int64_t nodes_of(const Scenario& scenario, const Preparation& preparation, const Cluster& cluster) {
  if (scenario.cluster && scenario.cluster->nodes) {
    return scenario.cluster->nodes->value;
  }
  if (scenario.trainer && scenario.trainer->num_nodes) {
    return scenario.trainer->num_nodes->value;
  }
  const int64_t free =
      std::max<int64_t>(1, cluster.node.devices - static_cast<int64_t>(cluster.occupied.size()));
  const int64_t devices =
      int64_t{preparation.options.world_size} * preparation.options.devices_per_rank;
  const int64_t nodes = scenario.is_bare_program() ? (devices + free - 1) / free : 1;
  return std::max<int64_t>(nodes, preparation.placement.launch.nodes);
}

sim::CollectiveAlgorithms algorithms_of(const Scenario& scenario, const Preparation& preparation,
                                        bool flat) {
  if (scenario.cluster && scenario.cluster->collectives) {
    switch (scenario.cluster->collectives->value) {
      case CollectiveModel::nccl: return sim::CollectiveAlgorithms::nccl;
      case CollectiveModel::gloo: return sim::CollectiveAlgorithms::gloo;
      case CollectiveModel::ring: return sim::CollectiveAlgorithms::ring;
      case CollectiveModel::tree: return sim::CollectiveAlgorithms::tree;
    }
  }
  if (flat) {
    return sim::CollectiveAlgorithms::ring;
  }
  if (preparation.placement.device == DeviceType::tpu && !scenario.is_bare_program()) {
    return sim::CollectiveAlgorithms::xla;
  }
  if (preparation.placement.device == DeviceType::mps) {
    return sim::CollectiveAlgorithms::ring;  // of one process, which calls none
  }
  return preparation.gloo ? sim::CollectiveAlgorithms::gloo : sim::CollectiveAlgorithms::nccl;
}

Machine flat_machine(const Scenario& scenario, const Preparation& preparation) {
  const NetworkSpec& network = *scenario.cluster->network;
  Machine machine;
  machine.cluster = flat_cluster(preparation.options.world_size, network.bandwidth->value,
                                 value_or(network.latency, Time{}));
  if (network.oversubscription) {
    machine.cluster.network.oversubscription = network.oversubscription->value;
  }
  machine.cluster.node.device.launch_overhead = Time{};  // times are what the program states
  machine.cluster.node.device.memory = Bytes::max();
  machine.ranks_per_node = 1;
  machine.is_flat = true;
  machine.name = fmt::format("{} ranks on a flat network", preparation.options.world_size);
  return machine;
}

// A variable that NCCL would not understand is an error where it is written.
void apply_nccl(Machine& machine, const Scenario& scenario) {
  for (const LibraryVersion& library : scenario.versions) {
    const std::optional<Version> version = version_of(library.version);
    if (library.library == "nccl" && version) {
      machine.nccl.version = {version->major, version->minor};
    }
  }
  for (const EnvironmentVariable& variable : scenario.env) {
    for (const sim::NcclSettingError& error :
         sim::read_nccl_settings({{variable.name, variable.value}}).errors) {
      machine.problems.push_back(
          {Problem::Kind::invalid, variable.place, error.message, error.remedy});
    }
  }
  machine.nccl.settings = sim::read_nccl_settings(nccl_variables(scenario)).settings;
}

}  // namespace

std::vector<sim::NcclVariable> nccl_variables(const Scenario& scenario) {
  std::vector<sim::NcclVariable> variables;
  for (const EnvironmentVariable& variable : scenario.env) {
    if (variable.name.starts_with("NCCL_")) {
      variables.push_back({variable.name, variable.value});
    }
  }
  return variables;
}

// Those with ranks: single_device has one, however many are asked for.
int64_t nodes_used(const Preparation& preparation, int64_t nodes) {
  const RunOptions& options = preparation.options;
  if (!options.ranks_of_nodes.empty() || options.ranks_per_node <= 0) {
    return nodes;
  }
  return std::min<int64_t>(
      nodes, (options.world_size + options.ranks_per_node - 1) / options.ranks_per_node);
}

Machine machine_of(const Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  if (is_flat(scenario)) {
    Machine machine = flat_machine(scenario, preparation);
    machine.algorithms = algorithms_of(scenario, preparation, true);
    return machine;
  }
  Machine machine;
  constexpr const char* assumed = "dgx-h100";
  const bool named = scenario.cluster && scenario.cluster->preset;
  const std::string preset = named ? scenario.cluster->preset->value : assumed;
  const std::optional<Cluster> known = cluster_preset(preset);
  if (!known) {
    machine.problems.push_back({Problem::Kind::invalid, scenario.cluster->preset->place,
                                fmt::format("there is no cluster preset `{}`", preset),
                                "`lockstep explain presets` lists them"});
    return machine;
  }
  machine.cluster = *known;
  if (!named) {
    machine.assumptions.push_back(
        fmt::format("machine: the scenario names no preset; {} is used", preset));
  }
  if (scenario.cluster) {
    apply_spec(machine, *scenario.cluster);
  }
  leave_out_unused(machine.cluster, preparation);
  machine.algorithms = algorithms_of(scenario, preparation, false);
  apply_nccl(machine, scenario);
  machine.ranks_per_node = preparation.options.ranks_per_node;
  machine.ranks_of_nodes = preparation.options.ranks_of_nodes;
  const int64_t nodes = nodes_of(scenario, preparation, machine.cluster);
  const int64_t free =
      machine.cluster.node.devices - static_cast<int64_t>(machine.cluster.occupied.size());
  if (scenario.is_bare_program() && machine.ranks_per_node > free) {
    machine.ranks_per_node = 0;
  }
  machine.cluster.nodes = static_cast<int>(std::min<int64_t>(nodes, maximum_ranks));
  const int64_t devices =
      int64_t{preparation.options.world_size} * preparation.options.devices_per_rank;
  const int64_t used = nodes_used(preparation, nodes);
  machine.name = fmt::format("{} x {} on {} node{}", devices, machine.cluster.node.device.name,
                             used, used == 1 ? "" : "s");
  return machine;
}

}  // namespace lockstep::cli
