#include "sim/staged_cost.hpp"

#include <algorithm>

#include "model/cluster/presets.hpp"

namespace lockstep::sim {

namespace {

// Of what one member has before and after the call.
struct Staged {
  Bytes to_host{};
  Bytes from_host{};
};

// `bytes` as in Op::bytes. Where members differ, of the one that moves the most.
Staged staged_by(const CollectiveCall& call) {
  const auto members = static_cast<int64_t>(call.members.size());
  switch (call.kind) {
    case OpKind::all_gather:
    case OpKind::gather: return {call.bytes, call.bytes * members};
    case OpKind::scatter: return {call.bytes * members, call.bytes};
    case OpKind::barrier:
    case OpKind::new_group: return {};
    default: return {call.bytes, call.bytes};
  }
}

}  // namespace

Cluster over_tcp(Cluster cluster) {
  const Cluster cpus = *cluster_preset("cpu");
  NodeModel& node = cluster.node;
  node.device.type = DeviceType::cpu;  // it hangs on its host's memory
  node.nvlink = BytesPerSecond{};
  node.nvlinks = 0;
  node.nvlink_pairs.clear();
  node.pcie = cpus.node.pcie;
  node.nics = std::min(node.nics, 1);
  node.latencies.host_memory = cpus.node.latencies.host_memory;
  cluster.network.latency = std::max(cluster.network.latency, cpus.network.latency);
  return cluster;
}

StagedCommunicationCost::StagedCommunicationCost(TopologyCommunicationCost& hosts,
                                                 const Cluster& cluster, const DeviceModel& host,
                                                 bool on_gpus)
    : hosts_(hosts),
      devices_(cluster, hosts.placement(), CollectiveAlgorithms::gloo, host),
      on_gpus_(on_gpus),
      capacities_(hosts.link_capacities()) {
  capacities_.insert(capacities_.end(), devices_.link_capacities().begin(),
                     devices_.link_capacities().end());
}

Time StagedCommunicationCost::to_host(int32_t rank, Bytes bytes) {
  const auto route = devices_.topology().route_to_host(devices_.placement().device(rank));
  return route.empty()
             ? Time{}
             : devices_.topology().latency(route) + bytes / devices_.topology().bottleneck(route);
}

Time StagedCommunicationCost::from_host(int32_t rank, Bytes bytes) {
  const auto route = devices_.topology().route_from_host(devices_.placement().device(rank));
  return route.empty()
             ? Time{}
             : devices_.topology().latency(route) + bytes / devices_.topology().bottleneck(route);
}

TransferPlan StagedCommunicationCost::collective(const CollectiveCall& call) {
  TransferPlan plan = hosts_.collective(call);
  const Staged staged = staged_by(call);
  if (on_gpus_ && call.members.size() > 1 && staged.to_host + staged.from_host > Bytes{}) {
    plan.latency += to_host(call.members.front(), staged.to_host) +
                    from_host(call.members.front(), staged.from_host);
  }
  return plan;
}

TransferPlan StagedCommunicationCost::point_to_point(int32_t source, int32_t destination,
                                                     Bytes bytes) {
  TransferPlan plan = hosts_.point_to_point(source, destination, bytes);
  if (on_gpus_) {
    plan.latency += to_host(source, bytes) + from_host(destination, bytes);
  }
  return plan;
}

TransferPlan StagedCommunicationCost::copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) {
  TransferPlan plan = devices_.copy(rank, from, to, bytes);
  if (plan.links == nullptr) {
    return plan;
  }
  const auto [known, fresh] = moved_from_.emplace(plan.links, nullptr);
  if (fresh) {
    const auto behind = static_cast<LinkIndex>(hosts_.link_capacities().size());
    std::vector<LinkIndex>& links = moved_.emplace_back(*plan.links);
    for (LinkIndex& link : links) {
      link += behind;
    }
    known->second = &links;
  }
  plan.links = known->second;
  return plan;
}

}  // namespace lockstep::sim
