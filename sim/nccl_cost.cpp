#include "sim/nccl_cost.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/lasting_plan.hpp"

namespace lockstep::sim {

namespace {

Time time_of_us(double microseconds_long) {
  constexpr double longest_us = 9e12;  // below what Time holds
  constexpr double picoseconds_per_us = 1e6;
  return Time(std::llround(std::min(microseconds_long, longest_us) * picoseconds_per_us));
}

}  // namespace

NcclCommunicationCost::NcclCommunicationCost(const Cluster& cluster,
                                             TopologyCommunicationCost& network,
                                             const NcclOptions& options)
    : cluster_(cluster), network_(network), options_(options) {}

TransferPlan NcclCommunicationCost::collective(const CollectiveCall& call) {
  if (call.members.size() < 2) {
    return {};
  }
  constexpr size_t plans_max = 65'536;
  const auto key = std::make_tuple(call.communicator, call.kind, call.bytes.count(), call.root);
  const auto known = plans_.find(key);
  if (known != plans_.end()) {
    return known->second;
  }
  if (plans_.size() >= plans_max) {
    plans_.clear();
  }
  return plans_.emplace(key, planned(call)).first->second;
}

const NcclPricing& NcclCommunicationCost::pricing_of(const CollectiveCall& call) {
  const auto known = pricings_.find(call.communicator);
  if (known != pricings_.end()) {
    return known->second;
  }
  std::vector<uint32_t> nodes;
  for (const int32_t rank : call.members) {
    const uint32_t node = network_.placement().device(rank).value /
                          static_cast<uint32_t>(network_.devices_per_node());
    if (nodes.empty() || nodes.back() != node) {
      nodes.push_back(node);
    }
  }
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  NcclPricing::Setup setup;
  setup.cluster = cluster_;
  setup.members = {static_cast<int64_t>(call.members.size()), static_cast<int64_t>(nodes.size())};
  setup.settings = options_.settings;
  setup.version = options_.version;
  return pricings_.emplace(call.communicator, NcclPricing(setup)).first->second;
}

TransferPlan NcclCommunicationCost::planned(const CollectiveCall& call) {
  const CollectivePrice price = pricing_of(call).price(call.kind, call.bytes);
  const bool is_tree = price.goes_by_trees;
  const auto on = [&call, is_tree](TopologyCommunicationCost& network) {
    return is_tree ? network.over_trees(call) : network.over_rings(call);
  };
  const TransferPlan links = on(network_);
  const Time added = healthy_ ? links.latency - on(*healthy_).latency : Time{};
  return lasting(links, time_of_us(price.fixed_us) + added, time_of_us(price.transfer_us),
                 link_capacities());
}

void NcclCommunicationCost::add_latency(LinkIndex link, Time latency) {
  if (!healthy_) {
    healthy_.emplace(network_);
  }
  network_.add_latency(link, latency);
  plans_.clear();
}

}  // namespace lockstep::sim
