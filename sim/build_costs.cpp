#include "sim/build_costs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "model/cluster/presets.hpp"

namespace lockstep::sim {

namespace {

double gigabytes(BytesPerSecond rate) { return static_cast<double>(rate.count()) * 1e-9; }

std::string sentence_of_device(const DeviceModel& device) {
  std::string text =
      fmt::format("compute: {}, roofline of data sheet figures ({})", device.name, device.source);
  if (device.assumption.empty()) {
    return text;
  }
  return text + "; UNCALIBRATED: " + device.assumption;
}

std::string sentence_of_links(const Cluster& cluster) {
  const NodeModel& node = cluster.node;
  std::string text = fmt::format("links: {}", node.name);
  if (node.nvlink > BytesPerSecond{}) {
    text += fmt::format(", NVLink {:g} GB/s", gigabytes(node.nvlink));
  }
  if (node.chip_links.links > 0) {
    text += fmt::format(", {} links of {:g} GB/s between chips", node.chip_links.links,
                        gigabytes(node.chip_links.rate));
  }
  text += fmt::format(", PCIe or host memory {:g} GB/s", gigabytes(node.pcie));
  if (cluster.nodes > 1) {
    text +=
        fmt::format(", {} NIC(s) of {:g} GB/s", node.nics, gigabytes(cluster.network.bandwidth));
  }
  return text + fmt::format(", a device and direction ({}); UNCALIBRATED: {}", node.source,
                            node.assumption.empty() ? "data sheet rates" : node.assumption);
}

std::string sentence_of_collectives(CollectiveAlgorithms algorithms) {
  constexpr const char* rest =
      "by latency and bandwidth of the links; the library's own overhead is not modelled";
  switch (algorithms) {
    case CollectiveAlgorithms::ring: return fmt::format("collectives: rings {}", rest);
    case CollectiveAlgorithms::tree:
      return fmt::format("collectives: double binary trees for all_reduce, else rings, {}", rest);
    case CollectiveAlgorithms::nccl:
      return fmt::format("collectives: the sooner of NCCL's ring and double binary tree {}", rest);
    case CollectiveAlgorithms::xla:
      return "collectives: rings over the links between chips, in both directions and in every "
             "dimension whose ends are joined; UNCALIBRATED: assumed, without XLA's own overhead";
    case CollectiveAlgorithms::gloo:
      return fmt::format("collectives: UNCALIBRATED: Gloo's algorithms {}", rest);
  }
  return {};
}

std::string sentence_of_nccl(NcclVersion version) {
  return fmt::format(
      "collectives: what the tuner of NCCL {}.{} chooses and counts, with launch, latency and "
      "efficiency fitted to public nccl-tests (docs/collectives.md); UNCALIBRATED: other machines",
      version.major, version.minor);
}

std::string sentence_of_staging(const Cluster& tcp, bool on_gpus) {
  const char* copies = on_gpus ? "c10d copies tensors from the GPU to host memory and back "
                                 "(ProcessGroupGloo.cpp), and Gloo "
                               : "Gloo ";
  return fmt::format(
      "transport: {}sends over TCP: {:g} GB/s per rank, between nodes over one NIC with {:g} us; "
      "UNCALIBRATED: assumed",
      copies, gigabytes(tcp.node.pcie), seconds(tcp.network.latency) * 1e6);
}

}  // namespace

DeviceModel host_share(const NodeModel& node, int32_t ranks_per_node) {
  DeviceModel host = *device_preset("cpu");
  const int64_t cores = std::max<int64_t>(1, node.cpu_cores / std::max(1, ranks_per_node));
  // A socket's memory saturates with far fewer cores than it has: assumed 8.
  constexpr int64_t cores_that_saturate_a_socket = 8;
  const int64_t saturating = cores_that_saturate_a_socket * node.sockets;
  for (auto& speed : host.speeds) {
    if (speed) {
      speed->peak = speed->peak * cores;
    }
  }
  const int64_t of_node = std::min<int64_t>(saturating, node.cpu_cores);
  host.memory_bandwidth = std::min(host.memory_bandwidth * cores,
                                   host.memory_bandwidth * of_node / std::max(1, ranks_per_node));
  return host;
}

namespace {

// Counts the ranks that share a host, as placed: occupied GPUs leave room for fewer.
int32_t most_ranks_on_a_node(const Placement& placement, int32_t devices_per_node) {
  int32_t most = 1;
  int32_t here = 0;
  std::optional<uint32_t> last;  // they are placed node after node
  for (size_t first = 0; first < placement.devices.size();
       first += static_cast<size_t>(placement.devices_per_rank)) {
    const uint32_t node = placement.devices[first].value / static_cast<uint32_t>(devices_per_node);
    here = last == node ? here + 1 : 1;
    last = node;
    most = std::max(most, here);
  }
  return most;
}

std::string sentence_of_range(const RangeFactors& range) {
  return fmt::format("held-out trainings: measured / predicted {:.2f} to {:.2f} (5 to 95 %)",
                     range.low, range.high);
}

// Measured costs in front of those of data sheets.
void use_calibration(Costs& costs, const MeasuredChoice& choice) {
  const Calibration& calibration = *choice.calibration;
  for (std::string& sentence : costs.basis) {
    sentence = "not measured: " + sentence;
  }
  auto compute = std::make_unique<MeasuredComputeCost>(choice, std::move(costs.compute));
  costs.measured_compute = compute.get();
  costs.compute = std::move(compute);
  CommunicationCost& otherwise = costs.pricing();
  costs.measured_communication =
      std::make_unique<MeasuredCommunicationCost>(choice, *costs.communication, otherwise);
  std::vector<std::string> measured = {
      fmt::format(
          "compute: overhead, FLOPs and bytes fitted to {} kinds of kernels measured on {}; "
          "{}",
          calibration.kernels.size(), calibration.origin.device,
          sentence_of_range(compute_range(calibration))),
      fmt::format("communication: {} curves measured on {}; {}", calibration.transfers.size(),
                  calibration.origin.device, sentence_of_range(communication_range(calibration)))};
  if (const std::optional<Time> launch = measured_launch_overhead(choice)) {
    costs.launch_overhead = *launch;
    measured.push_back(fmt::format("launch: {:g} us of host time per operation, measured",
                                   seconds(*launch) * 1e6));
  }
  costs.basis.insert(costs.basis.begin(), measured.begin(), measured.end());
}

}  // namespace

CostsResult build_costs(const Cluster& cluster, const CostOptions& options) {
  CostsResult result;
  result.errors = errors_of(cluster);
  if (!result.errors.empty()) {
    return result;
  }
  PlacementResult placed = place_ranks(cluster, options.world_size, options.ranks_per_node,
                                       options.devices_per_rank, options.ranks_of_nodes);
  if (!placed.errors.empty()) {
    result.errors = std::move(placed.errors);
    return result;
  }
  const DeviceModel& device = cluster.node.device;
  const int32_t ranks_per_node = most_ranks_on_a_node(placed.placement, cluster.node.devices);
  const DeviceModel host = host_share(cluster.node, ranks_per_node);
  Costs& costs = result.costs;
  costs.launch_overhead = device.launch_overhead;
  costs.ranks_on_node = ranks_per_node;
  costs.device_memory = device.memory;
  costs.basis = {
      sentence_of_device(device),
      sentence_of_links(cluster),
      sentence_of_collectives(options.algorithms),
      fmt::format(
          "launch: {:g} us of host time per operation; host work: {} core(s) per rank, {:g} "
          "GB/s of memory; UNCALIBRATED: assumed",
          seconds(device.launch_overhead) * 1e6,
          std::max(1, cluster.node.cpu_cores / std::max(1, ranks_per_node)),
          gigabytes(host.memory_bandwidth)),
  };
  costs.compute = std::make_unique<RooflineComputeCost>(device, host);
  const bool staged = options.algorithms == CollectiveAlgorithms::gloo && device.is_accelerator();
  costs.communication = std::make_unique<TopologyCommunicationCost>(
      staged ? over_tcp(cluster) : cluster, std::move(placed.placement), options.algorithms, host,
      RunningRanks{options.classes, options.folds_links});
  if (options.algorithms == CollectiveAlgorithms::nccl && device.compute_capability > 0) {
    costs.nccl =
        std::make_unique<NcclCommunicationCost>(cluster, *costs.communication, options.nccl);
    costs.basis[2] = sentence_of_nccl(options.nccl.version);
  }
  if (options.algorithms == CollectiveAlgorithms::xla && cluster.node.chip_links.links > 0) {
    costs.ici =
        std::make_unique<IciCommunicationCost>(cluster.node.chip_links, *costs.communication);
  }
  if (staged) {
    costs.staged = std::make_unique<StagedCommunicationCost>(*costs.communication, cluster, host,
                                                             options.on_gpus);
    costs.basis.push_back(sentence_of_staging(over_tcp(cluster), options.on_gpus));
  }
  if (options.calibration != nullptr) {
    use_calibration(costs, {options.calibration, options.network, ranks_per_node, options.end});
  }
  if (!options.stragglers.empty()) {
    auto slowed = std::make_unique<SlowedComputeCost>(std::move(costs.compute), options.stragglers);
    costs.slowed = slowed.get();
    costs.compute = std::move(slowed);
  }
  return result;
}

}  // namespace lockstep::sim
