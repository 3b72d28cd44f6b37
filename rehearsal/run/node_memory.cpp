#include "rehearsal/run/node_memory.hpp"

#include <algorithm>

#include "sim/topology_cost.hpp"

namespace lockstep::cli {

namespace {

void add(NodeMemory& node, const DeviceMemory& memory) {
  node.needed += memory.peak;
  for (size_t purpose = 0; purpose < node.by_purpose.size(); ++purpose) {
    node.by_purpose[purpose] += memory.peak_by_purpose[purpose];
  }
}

void add(NodeMemory& node, const NodeMemory& of_rank) {
  node.needed += of_rank.needed;
  for (size_t purpose = 0; purpose < node.by_purpose.size(); ++purpose) {
    node.by_purpose[purpose] += of_rank.by_purpose[purpose];
  }
}

// What each rank needs there, as if it were alone on its node.
ByRank<NodeMemory> memory_of_ranks(const OneRun& run, DeviceId asked) {
  const bool on_cpu = run.preparation.placement.cpu && asked == host_device;
  ByRank<NodeMemory> of_ranks(run.result.memory.size(), run.preparation.options.classes);
  for (size_t place = 0; place < of_ranks.distinct().size(); ++place) {
    for (const auto& [where, memory] : run.result.memory[of_ranks.first_of(place)]) {
      if (where == asked || (on_cpu && where != drive_device)) {
        add(of_ranks.distinct()[place], memory);
      }
    }
  }
  return of_ranks;
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
  const sim::PlacementResult placed =
      sim::place_ranks(cluster, options.world_size, run.machine.ranks_per_node,
                       options.devices_per_rank, run.machine.ranks_of_nodes);
  if (!placed.errors.empty()) {
    return {};
  }
  const ByRank<NodeMemory> of_ranks = memory_of_ranks(run, asked);
  std::vector<NodeMemory> all;  // ranks are placed node after node
  all.reserve(std::min<size_t>(of_ranks.size(), static_cast<size_t>(cluster.nodes)));
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto number = static_cast<int32_t>(rank);
    const DeviceNumber device = placed.placement.device(number);
    const auto place = static_cast<int32_t>(device.value) / cluster.node.devices;
    if (all.empty() || all.back().node != place) {
      NodeMemory& node = all.emplace_back();
      node.node = place;
      const Bytes known = asked == drive_device ? cluster.node.nvme.size : cluster.node.memory;
      if (known > Bytes{}) {
        node.capacity = known;
      }
    }
    all.back().ranks.add(number);
    add(all.back(), of_ranks[rank]);
  }
  return all;
}

const NodeMemory* fullest(const std::vector<NodeMemory>& nodes) {
  const auto found = std::ranges::max_element(nodes, {}, &NodeMemory::needed);
  return found == nodes.end() ? nullptr : &*found;
}

bool exceeds_node_memory(const OneRun& run) {
  if (!run.ran) {
    return false;
  }
  const auto exceeds = [&run](DeviceId where) {
    const ByRank<NodeMemory> of_ranks = memory_of_ranks(run, where);
    if (std::ranges::all_of(of_ranks.distinct(),
                            [](const NodeMemory& rank) { return rank.needed == Bytes{}; })) {
      return false;
    }
    const std::vector<NodeMemory> nodes = node_memory_of(run, where);
    return std::ranges::any_of(nodes, [](const NodeMemory& node) { return !node.fits(); });
  };
  return exceeds(host_device) || exceeds(drive_device);
}

}  // namespace lockstep::cli
