#include "model/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

namespace {

bool is_place(const Cluster& cluster, int place) {
  return place >= 0 && place < cluster.node.devices;
}

void check_counts(const Cluster& cluster, std::vector<ClusterError>& errors) {
  if (cluster.nodes < 1) {
    errors.push_back({fmt::format("{} nodes", cluster.nodes), "set nodes to 1 or more"});
  }
  if (cluster.node.devices < 1) {
    errors.push_back(
        {fmt::format("{} devices in a node", cluster.node.devices), "set gpus to 1 or more"});
  }
  for (const int place : cluster.occupied) {
    if (!is_place(cluster, place)) {
      errors.push_back({fmt::format("occupied GPU {} does not exist", place),
                        fmt::format("a node has GPUs 0 .. {}", cluster.node.devices - 1)});
    }
  }
}

void check_links(const Cluster& cluster, std::vector<ClusterError>& errors) {
  const NodeModel& node = cluster.node;
  for (const NvlinkPair& pair : node.nvlink_pairs) {
    if (pair.first < 0 || pair.second < 0 || pair.first == pair.second || pair.links < 1 ||
        node.nvlinks < 1) {
      errors.push_back(
          {fmt::format("{} NVLinks between GPUs {} and {}", pair.links, pair.first, pair.second),
           "name two GPUs of the node and at least one link"});
    }
  }
  if (node.nvlink_nodes < 1) {
    errors.push_back({"no node in an NVLink domain", "set nvlink_nodes to 1 or more"});
  }
  if (node.nics < 0 || node.sockets < 1 || node.devices_per_pcie_switch < 1) {
    errors.push_back({"a negative number of NICs, or no CPU socket", "correct the counts"});
  }
  if ((node.devices > 1 || cluster.nodes > 1) && node.pcie <= BytesPerSecond(0)) {
    errors.push_back({"the devices of a node have no connection", "set pcie above 0"});
  }
  if (node.sockets > 1 && node.socket_link <= BytesPerSecond(0)) {
    errors.push_back({"the CPU sockets have no connection", "set one socket"});
  }
}

void check_network(const Cluster& cluster, std::vector<ClusterError>& errors) {
  if (cluster.nodes > 1 && cluster.network.bandwidth <= BytesPerSecond(0)) {
    errors.push_back({"several nodes without a network", "set network.bandwidth above 0"});
  }
  if (cluster.nodes > 1 && cluster.node.nics < 1) {
    errors.push_back({"several nodes without a NIC", "set nics to 1 or more"});
  }
  if (cluster.network.latency < Time(0)) {
    errors.push_back({"a negative network latency", "set network.latency to 0 or more"});
  }
  if (!(cluster.network.oversubscription >= 1)) {
    errors.push_back({fmt::format("oversubscription {}", cluster.network.oversubscription),
                      "set it to 1 (non-blocking) or more"});
  }
}

}  // namespace

std::vector<ClusterError> errors_of(const Cluster& cluster) {
  std::vector<ClusterError> errors;
  check_counts(cluster, errors);
  check_links(cluster, errors);
  check_network(cluster, errors);
  return errors;
}

}  // namespace lockstep
