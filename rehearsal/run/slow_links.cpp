// Which links of a cluster a `slow_link` strikes.
#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/run/faults.hpp"

namespace lockstep::cli {

namespace {

DeviceNumber device_at(const LinkEnd& end, int64_t place, const Cluster& cluster) {
  return DeviceNumber{static_cast<uint32_t>(
      end.kind == LinkEnd::Kind::gpu ? end.number : end.number * cluster.node.devices + place)};
}

bool is_slow_link(const FaultSpec& fault) {
  return fault.kind == FaultKind::slow_link && fault.between.size() == 2;
}

// The latency of a network counts on the way out of a NIC; a route without one begins at its GPU.
LinkId link_of_latency(const std::vector<LinkId>& route, const Topology& topology) {
  const auto network = std::ranges::find_if(
      route, [&topology](LinkId link) { return topology.link(link).kind == LinkKind::network; });
  return network == route.end() ? route.front() : *network;
}

}  // namespace

std::vector<Problem> problems_of_links(const Scenario& scenario, const Cluster& cluster) {
  std::vector<Problem> problems;
  for (const FaultSpec& fault : scenario.faults) {
    if (!is_slow_link(fault)) {
      continue;
    }
    for (const Placed<LinkEnd>& end : fault.between) {
      const bool node = end.value.kind == LinkEnd::Kind::node;
      const int64_t count = node ? cluster.nodes : cluster.devices();
      if (end.value.number < 0 || end.value.number >= count) {
        problems.push_back({Problem::Kind::invalid, end.place,
                            fmt::format("there is no {} {} among {}", node ? "node" : "gpu",
                                        end.value.number, count),
                            fmt::format("they are 0 to {}", count - 1)});
      }
    }
    const LinkEnd& left = fault.between[0].value;
    const LinkEnd& right = fault.between[1].value;
    if (problems.empty() && device_at(left, 0, cluster) == device_at(right, 0, cluster)) {
      problems.push_back({Problem::Kind::invalid, fault.place,
                          "`slow_link`: both ends are the same", "name two ends"});
    }
  }
  return problems;
}

std::vector<sim::LinkFault> slow_links(const Scenario& scenario,
                                       sim::TopologyCommunicationCost& communication,
                                       const Cluster& cluster) {
  const Topology& topology = communication.topology();
  std::vector<sim::LinkFault> faults;
  for (size_t number = 0; number < scenario.faults.size(); ++number) {
    const FaultSpec& fault = scenario.faults[number];
    if (!is_slow_link(fault)) {
      continue;
    }
    const LinkEnd& left = fault.between[0].value;
    const LinkEnd& right = fault.between[1].value;
    const bool nodes = left.kind == LinkEnd::Kind::node || right.kind == LinkEnd::Kind::node;
    std::map<LinkId, Time> links;  ///< with the latency that is added to them
    for (int64_t place = 0; place < (nodes ? cluster.node.devices : 1); ++place) {
      const DeviceNumber from = device_at(left, place, cluster);
      const DeviceNumber to = device_at(right, place, cluster);
      for (const auto& route : {topology.route(from, to), topology.route(to, from)}) {
        for (const LinkId link : route) {
          links.emplace(link, Time{});
        }
        if (!route.empty()) {
          links[link_of_latency(route, topology)] = value_or(fault.latency, Time{});
        }
      }
    }
    for (const auto& [link, latency] : links) {
      faults.push_back({communication.number_of(link), fault.at ? fault.at->value : Instant{},
                        value_or(fault.duration, Time::max()), value_or(fault.bandwidth, 1.0),
                        latency, static_cast<int32_t>(number)});
    }
  }
  return faults;
}

}  // namespace lockstep::cli
