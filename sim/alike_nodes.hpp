#pragma once

#include <optional>
#include <vector>

#include "model/cluster/topology.hpp"
#include "model/program/rank_classes.hpp"
#include "sim/traffic_pattern.hpp"

namespace lockstep::sim {

/// Nodes on which the same ranks run at the same places. Of those whose ranks others stand for,
/// collectives of all ranks ask the same of every link as of the link at its place in any other
/// such node, so that links of one node stand for those of all. They are numbered as if only the
/// first node of each class existed.
class AlikeNodes {
 public:
  /// `devices`: by rank. Nothing: they do not lie at the same places in all nodes, or there are
  /// fewer than three.
  static std::optional<AlikeNodes> of(const std::vector<DeviceNumber>& devices,
                                      const Topology& topology, const RankClasses& ranks);

  /// Classes of nodes.
  size_t size() const { return nodes_.size(); }
  int64_t nodes() const { return static_cast<int64_t>(nodes_.ranks()); }
  size_t class_of(int64_t node) const { return nodes_.of(static_cast<size_t>(node)); }
  bool is_alone(int64_t node) const { return nodes_.ranks_in(class_of(node)) == 1; }
  int64_t links_per_node() const { return links_per_node_; }
  size_t ranks_per_node() const { return places_.size(); }
  LinkIndex number_of(LinkId link) const;

  /// What ring_pattern and double_tree_pattern give for all ranks, with each link of a class once;
  /// `uneven` where nodes without simulated ranks have more or fewer edges in the trees.
  TrafficPattern ring(const Topology& topology, int64_t steps) const;
  TrafficPattern double_tree(const Topology& topology) const;

 private:
  AlikeNodes(RankClasses nodes, std::vector<bool> runs, std::vector<DeviceNumber> places,
             const Topology& topology);
  DeviceNumber on_next_node(DeviceNumber place) const;
  static void add_links(size_t number, const std::vector<uint32_t>& weights,
                        TrafficPattern& pattern);

  RankClasses nodes_;                 ///< of nodes, in place of ranks
  std::vector<bool> runs_;            ///< by class: ranks are simulated on it
  std::vector<DeviceNumber> places_;  ///< of the first node, ascending
  int64_t devices_per_node_ = 1;
  int64_t links_per_node_ = 1;
};

}  // namespace lockstep::sim
