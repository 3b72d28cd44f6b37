#include "rehearsal/run/node_memory.hpp"

#include <algorithm>
#include <map>

#include "sim/topology_cost.hpp"

namespace lockstep::cli {

namespace {

void add(NodeMemory& node, const DeviceMemory& memory) {
  node.needed += memory.peak;
  for (size_t purpose = 0; purpose < node.by_purpose.size(); ++purpose) {
    node.by_purpose[purpose] += memory.peak_by_purpose[purpose];
  }
}

}  // namespace

bool NodeMemory::holds_offloaded() const {
  return of(Purpose::parameter) + of(Purpose::gradient) + of(Purpose::optimizer_state) +
             of(Purpose::workspace) >
         Bytes{};
}

std::vector<NodeMemory> node_memory_of(const OneRun& run, DeviceId asked) {
  const RunOptions& options = run.preparation.options;
  const Cluster& cluster = run.machine.cluster;
  if (!run.ran || run.machine.is_flat) {
    return {};
  }
  const sim::PlacementResult placed = sim::place_ranks(
      cluster, options.world_size, run.machine.ranks_per_node, options.devices_per_rank);
  if (!placed.errors.empty()) {
    return {};
  }
  std::map<int32_t, NodeMemory> nodes;
  for (size_t rank = 0; rank < run.result.memory.size(); ++rank) {
    const auto number = static_cast<int32_t>(rank);
    const DeviceNumber device = placed.placement.device(number);
    const auto place = static_cast<int32_t>(device.value) / cluster.node.devices;
    NodeMemory& node = nodes[place];
    node.node = place;
    node.ranks.add(number);
    const Bytes known = asked == drive_device ? cluster.node.nvme.size : cluster.node.memory;
    if (known > Bytes{}) {
      node.capacity = known;
    }
    for (const auto& [where, memory] : run.result.memory[rank]) {
      const bool on_cpu = run.preparation.placement.cpu && asked == host_device;
      if (where == asked || (on_cpu && where != drive_device)) {
        add(node, memory);
      }
    }
  }
  std::vector<NodeMemory> all;
  for (auto& [place, node] : nodes) {
    all.push_back(std::move(node));
  }
  return all;
}

const NodeMemory* fullest(const std::vector<NodeMemory>& nodes) {
  const auto found = std::ranges::max_element(nodes, {}, &NodeMemory::needed);
  return found == nodes.end() ? nullptr : &*found;
}

bool exceeds_node_memory(const OneRun& run) {
  const auto exceeds = [&run](DeviceId where) {
    const std::vector<NodeMemory> nodes = node_memory_of(run, where);
    return std::ranges::any_of(nodes, [](const NodeMemory& node) { return !node.fits(); });
  };
  return exceeds(host_device) || exceeds(drive_device);
}

}  // namespace lockstep::cli
