#include "cli/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep::cli {

namespace {

void refuse(FaultPlan& plan, const FaultSpec& fault, const std::string& message,
            const std::string& remedy = "") {
  plan.problems.push_back({Problem::Kind::unsupported, fault.place, message, remedy});
}

std::vector<int32_t> ranks_of(const FaultSpec& fault, int32_t world_size, FaultPlan& plan) {
  std::vector<int64_t> asked;
  if (fault.rank) {
    asked = {fault.rank->value};
  } else if (fault.ranks && fault.ranks->value.kind == RankSelection::Kind::listed) {
    asked = fault.ranks->value.ranks;
  } else if (fault.ranks && fault.ranks->value.kind == RankSelection::Kind::others) {
    refuse(plan, fault, "`others` says no ranks in a fault", "list the ranks");
  } else {
    asked.resize(static_cast<size_t>(world_size));
    std::iota(asked.begin(), asked.end(), 0);
  }
  std::vector<int32_t> ranks;
  for (const int64_t rank : asked) {
    if (rank < 0 || rank >= world_size) {
      plan.problems.push_back({Problem::Kind::invalid, fault.place,
                               fmt::format("there is no rank {} among {}", rank, world_size), ""});
    } else {
      ranks.push_back(static_cast<int32_t>(rank));
    }
  }
  return ranks;
}

Time begin_of(const FaultSpec& fault, FaultPlan& plan) {
  if (!fault.at) {
    return {};
  }
  if (fault.at->value.kind != Instant::Kind::time) {
    refuse(plan, fault, "a fault at a step or epoch is not injected yet",
           "write a time: `at: 2 s`");
    return {};
  }
  return fault.at->value.time;
}

Time end_of(const FaultSpec& fault, Time begin) {
  return fault.duration ? begin + fault.duration->value : Time::max();
}

void add_call(const FaultSpec& fault, PlannedFault::Kind kind, int32_t world_size,
              FaultPlan& plan) {
  for (const int32_t rank : ranks_of(fault, world_size, plan)) {
    auto& planned = plan.planned[rank];
    planned.push_back({kind, fault.call ? fault.call->value : 0, no_site});
    std::stable_sort(planned.begin(), planned.end(), [](const auto& left, const auto& right) {
      return left.submission < right.submission;
    });
  }
}

void add_lost_node(const FaultSpec& fault, const Preparation& preparation, FaultPlan& plan) {
  const Time at = begin_of(fault, plan);
  for (int32_t rank = 0; rank < preparation.options.world_size; ++rank) {
    if (fault.node && place_of(preparation.options, rank).node == fault.node->value) {
      plan.lost_ranks.push_back({rank, at});
    }
  }
}

void add(const FaultSpec& fault, const Preparation& preparation, FaultPlan& plan) {
  const int32_t world_size = preparation.options.world_size;
  switch (fault.kind) {
    case FaultKind::straggler: {
      const Time begin = begin_of(fault, plan);
      for (const int32_t rank : ranks_of(fault, world_size, plan)) {
        plan.stragglers.push_back(
            {rank, value_or(fault.slowdown, 1.0), begin, end_of(fault, begin)});
      }
      break;
    }
    case FaultKind::lost_rank: {
      const Time at = begin_of(fault, plan);
      for (const int32_t rank : ranks_of(fault, world_size, plan)) {
        plan.lost_ranks.push_back({rank, at});
      }
      break;
    }
    case FaultKind::lost_node: add_lost_node(fault, preparation, plan); break;
    case FaultKind::lost_message:
      add_call(fault, PlannedFault::Kind::lost_message, world_size, plan);
      break;
    case FaultKind::corrupted_value:
      add_call(fault, PlannedFault::Kind::corrupted_value, world_size, plan);
      break;
    case FaultKind::slow_link:
      begin_of(fault, plan);
      if (fault.latency) {
        refuse(plan, fault, "latency added to a link is not modelled yet", "lower its bandwidth");
      }
      break;
    default: break;  // injected by the program, or told as unsupported by `prepare`
  }
}

DeviceNumber device_at(const LinkEnd& end, int64_t place, const Cluster& cluster) {
  const int64_t number = end.kind == LinkEnd::Kind::gpu
                             ? end.number
                             : end.number * cluster.node.devices + place;
  return DeviceNumber{static_cast<uint32_t>(
      std::clamp<int64_t>(number, 0, std::max<int64_t>(cluster.devices() - 1, 0)))};
}

}  // namespace

std::set<FaultKind> faults_of(World world) {
  if (world == World::threads) {
    return {FaultKind::lost_message, FaultKind::corrupted_value};
  }
  return {FaultKind::straggler, FaultKind::slow_link,    FaultKind::lost_rank,
          FaultKind::lost_node, FaultKind::lost_message, FaultKind::corrupted_value};
}

FaultPlan plan_faults(const Scenario& scenario, const Preparation& preparation) {
  FaultPlan plan;
  for (const FaultSpec& fault : scenario.faults) {
    add(fault, preparation, plan);
  }
  return plan;
}

std::vector<sim::LinkFault> slow_links(const Scenario& scenario,
                                       const sim::TopologyCommunicationCost& communication,
                                       const Cluster& cluster) {
  std::vector<sim::LinkFault> faults;
  for (const FaultSpec& fault : scenario.faults) {
    if (fault.kind != FaultKind::slow_link || fault.between.size() != 2) {
      continue;
    }
    const LinkEnd& left = fault.between[0].value;
    const LinkEnd& right = fault.between[1].value;
    const bool nodes = left.kind == LinkEnd::Kind::node && right.kind == LinkEnd::Kind::node;
    std::set<LinkId> links;
    for (int64_t place = 0; place < (nodes ? cluster.node.devices : 1); ++place) {
      const DeviceNumber from = device_at(left, place, cluster);
      const DeviceNumber to = device_at(right, place, cluster);
      const Topology& topology = communication.topology();
      for (const auto& route : {topology.route(from, to), topology.route(to, from)}) {
        links.insert(route.begin(), route.end());
      }
    }
    const Time begin = fault.at ? fault.at->value.time : Time{};
    for (const LinkId link : links) {
      const BytesPerSecond full = communication.link_capacities()[link.value];
      const double left_over = value_or(fault.bandwidth, 1.0) * static_cast<double>(full.count());
      faults.push_back({link.value, begin,
                        BytesPerSecond(std::max<int64_t>(1, static_cast<int64_t>(left_over)))});
      if (fault.duration) {
        faults.push_back({link.value, begin + fault.duration->value, full});
      }
    }
  }
  return faults;
}

}  // namespace lockstep::cli
