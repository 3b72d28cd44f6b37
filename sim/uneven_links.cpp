#include "sim/uneven_links.hpp"

#include <algorithm>
#include <map>

namespace lockstep::sim {

namespace {

/// How often the links at one place of alike nodes are crossed.
struct Uses {
  int64_t nodes = 0;  ///< on which the pattern crosses it
  uint32_t first_weight = 0;
  bool differ = false;

  void add(uint32_t weight) {
    first_weight = nodes == 0 ? weight : first_weight;
    differ = differ || weight != first_weight;
    ++nodes;
  }
};

}  // namespace

std::vector<LinkIndex> uneven_links(const TrafficPattern& pattern, std::span<const int32_t> members,
                                    const Topology& topology, const Placement& placement,
                                    const RankClasses& classes) {
  const int64_t links_per_node = topology.link_count() / topology.nodes();
  const int64_t devices_per_node = topology.devices() / topology.nodes();
  const auto node_of_rank = [&](int32_t rank) {
    return placement.device(rank).value / devices_per_node;
  };
  std::map<int64_t, int64_t> running_node;  // by node with members: the one that runs for it
  std::map<int64_t, int64_t> alike;         // by node that runs: for how many, itself included
  for (const int32_t rank : members) {
    const int64_t running = node_of_rank(classes.first(classes.of(static_cast<size_t>(rank))));
    if (running_node.try_emplace(node_of_rank(rank), running).second) {
      ++alike[running];
    }
  }
  std::map<LinkIndex, Uses> uses;  // by link of a node that runs
  for (size_t place = 0; place < pattern.links.size(); ++place) {
    const int64_t node = pattern.links[place] / links_per_node;
    const auto running = running_node.find(node);
    if (running != running_node.end()) {
      const int64_t link = running->second * links_per_node + pattern.links[place] % links_per_node;
      uses[static_cast<LinkIndex>(link)].add(pattern.weights[place]);
    }
  }
  std::vector<LinkIndex> uneven;
  for (const auto& [link, crossed] : uses) {
    if (crossed.differ || crossed.nodes != alike[link / links_per_node]) {
      uneven.push_back(link);
    }
  }
  return uneven;
}

}  // namespace lockstep::sim
