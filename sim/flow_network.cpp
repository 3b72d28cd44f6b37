#include "sim/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/core/ensure.hpp"

namespace lockstep::sim {

FlowNetwork::FlowNetwork(const std::vector<BytesPerSecond>& capacities)
    : capacities_(capacities), links_(capacities.size()) {
  for (size_t link = 0; link < links_.size(); ++link) {
    links_[link].capacity = static_cast<double>(capacities[link].count());
  }
}

bool FlowNetwork::shares(const Flow& flow) const {
  return flow.plan.with_columns != nullptr ||
         std::any_of(flow.links().begin(), flow.links().end(),
                     [this](LinkIndex link) { return links_[link].flows.size() > 1; });
}

// The slowest link decides: the one with the least capacity for its weight.
Time FlowNetwork::time_alone(const TransferPlan& plan, double& rate) const {
  BytesPerSecond capacity = BytesPerSecond::max();
  int64_t weight = 1;
  for (size_t place = 0; place < plan.links->size(); ++place) {
    const BytesPerSecond here = capacities_[(*plan.links)[place]];
    const int64_t times = plan.weights == nullptr ? 1 : (*plan.weights)[place];
    if (static_cast<Int128>(here.count()) * weight <
        static_cast<Int128>(capacity.count()) * times) {
      capacity = here;
      weight = times;
    }
  }
  rate = static_cast<double>(capacity.count()) / static_cast<double>(weight);
  return plan.volume * weight / capacity;
}

uint32_t FlowNetwork::start(Time now, const TransferPlan& plan, std::vector<Forecast>& forecasts) {
  uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<uint32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[index];
  flow.plan = plan;
  flow.remaining_bytes = static_cast<double>(plan.volume.count());
  flow.since = now;
  flow.rate = 0;
  flow.active = true;
  if (flow.is_uneven()) {
    uneven_flows_.push_back(index);
  }
  flow.order = started_++;
  ++flow.generation;
  for (const LinkIndex link : *plan.links) {
    links_[link].flows.push_back(index);
  }
  if (!shares(flow)) {
    const Time duration = time_alone(plan, flow.rate);
    forecasts.push_back({index, flow.generation, now + duration});
  } else {
    share_anew(now, {index}, forecasts);
  }
  return index;
}

namespace {

bool names(const std::vector<LinkIndex>* links, LinkIndex link) {
  return links != nullptr && std::ranges::binary_search(*links, link);
}

}  // namespace

// One that names a link need not cross it: it may cross that of another node alone.
bool FlowNetwork::is_shared_unevenly(uint32_t index) const {
  const Flow& flow = flows_[index];
  const bool meets_uneven =
      flow.is_of_many() && std::ranges::any_of(uneven_flows_, [&](uint32_t uneven) {
        return std::ranges::any_of(flow.links(), [&](LinkIndex link) {
          return is_crossed_unevenly(flow, flows_[uneven], link);
        });
      });
  const auto meets_others = [&](const std::vector<LinkIndex>* named) {
    return named != nullptr && std::ranges::any_of(*named, [&](LinkIndex link) {
             return std::ranges::any_of(links_[link].flows, [&](uint32_t other) {
               return flows_[other].is_of_many() && is_crossed_unevenly(flows_[other], flow, link);
             });
           });
  };
  return meets_uneven || meets_others(flow.plan.uneven) || meets_others(flow.plan.uneven_columns);
}

// Whether those for which `alone` stands meet `wide` on links like this one otherwise. A link that
// all columns cross is at the same place for each.
bool FlowNetwork::is_crossed_unevenly(const Flow& alone, const Flow& wide, LinkIndex link) {
  const auto is_own_of_column = [&] {
    const auto place =
        static_cast<size_t>(std::ranges::find(alone.links(), link) - alone.links().begin());
    return alone.plan.columns > 1 &&
           alone.weight(place) < alone.own_weight(place) * alone.plan.columns;
  };
  return (alone.plan.stands_for_others && names(wide.plan.uneven, link)) ||
         (names(wide.plan.uneven_columns, link) && is_own_of_column());
}

void FlowNetwork::leave_links(uint32_t index, std::vector<uint32_t>& neighbours) {
  for (const LinkIndex link : flows_[index].links()) {
    auto& flows = links_[link].flows;
    flows.erase(std::find(flows.begin(), flows.end(), index));
    neighbours.insert(neighbours.end(), flows.begin(), flows.end());
  }
  // By their start, because the index of a flow depends on which of earlier ones have ended.
  std::sort(neighbours.begin(), neighbours.end(), [this](uint32_t left, uint32_t right) {
    return flows_[left].order < flows_[right].order;
  });
  neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
}

bool FlowNetwork::finish(Time now, uint32_t index, uint32_t generation,
                         std::vector<Forecast>& forecasts) {
  Flow& flow = flows_[index];
  if (!flow.active || flow.generation != generation) {
    return false;
  }
  std::vector<uint32_t> neighbours;
  leave_links(index, neighbours);
  flow.active = false;
  std::erase(uneven_flows_, index);
  free_.push_back(index);
  if (!neighbours.empty()) {
    share_anew(now, std::move(neighbours), forecasts);
  }
  return true;
}

void FlowNetwork::set_capacity(Time now, LinkIndex link, BytesPerSecond capacity,
                               std::vector<Forecast>& forecasts) {
  capacities_[link] = capacity;
  links_[link].capacity = static_cast<double>(capacity.count());
  if (!links_[link].flows.empty()) {
    share_anew(now, links_[link].flows, forecasts);
  }
}

// All flows that are connected to the given ones through shared links, and those links.
void FlowNetwork::collect_component(std::vector<uint32_t>& flows, std::vector<LinkIndex>& links) {
  for (const uint32_t flow : flows) {
    flows_[flow].visited = true;
  }
  for (size_t next = 0; next < flows.size(); ++next) {
    for (const LinkIndex link : flows_[flows[next]].links()) {
      if (links_[link].visited) {
        continue;
      }
      links_[link].visited = true;
      links.push_back(link);
      for (const uint32_t other : links_[link].flows) {
        if (!flows_[other].visited) {
          flows_[other].visited = true;
          flows.push_back(other);
        }
      }
    }
  }
  for (const uint32_t flow : flows) {
    flows_[flow].visited = false;
  }
  for (const LinkIndex link : links) {
    links_[link].visited = false;
  }
}

void FlowNetwork::share_anew(Time now, std::vector<uint32_t> affected,
                             std::vector<Forecast>& forecasts) {
  std::vector<LinkIndex> links;
  collect_component(affected, links);
  std::vector<double> rates_before;
  for (const uint32_t index : affected) {
    Flow& flow = flows_[index];
    flow.remaining_bytes =
        std::max(0.0, flow.remaining_bytes - flow.rate * seconds(now - flow.since));
    flow.since = now;
    rates_before.push_back(flow.rate);
    flow.rate = 0;
  }
  fill(affected, links);
  for (size_t i = 0; i < affected.size(); ++i) {
    Flow& flow = flows_[affected[i]];
    if (flow.rate == rates_before[i]) {
      continue;  // its forecast still holds
    }
    const double rest_s = flow.remaining_bytes / flow.rate;
    ++flow.generation;
    forecasts.push_back({affected[i], flow.generation,
                         now + Time(static_cast<int64_t>(std::llround(rest_s * 1e12)))});
  }
}

// Progressive filling: raise all rates together until a link is full, fix its flows, go on.
void FlowNetwork::fill(const std::vector<uint32_t>& flows, const std::vector<LinkIndex>& links) {
  for (const LinkIndex link : links) {
    links_[link].left = links_[link].capacity;
    links_[link].unfixed = 0;
  }
  for (const uint32_t index : flows) {
    for (size_t place = 0; place < flows_[index].links().size(); ++place) {
      links_[flows_[index].links()[place]].unfixed += flows_[index].weight(place);
    }
  }
  size_t unfixed = flows.size();
  while (unfixed > 0) {
    double share = std::numeric_limits<double>::infinity();
    LinkIndex fullest = 0;
    for (const LinkIndex link : links) {
      const Link& candidate = links_[link];
      if (candidate.unfixed == 0) {
        continue;
      }
      const double rate = candidate.left / static_cast<double>(candidate.unfixed);
      if (rate < share) {
        share = rate;
        fullest = link;
      }
    }
    ensure(std::isfinite(share), "every flow crosses a link");
    for (const uint32_t index : links_[fullest].flows) {
      Flow& flow = flows_[index];
      if (flow.rate > 0) {
        continue;
      }
      flow.rate = share;
      --unfixed;
      for (size_t place = 0; place < flow.links().size(); ++place) {
        Link& crossed = links_[flow.links()[place]];
        crossed.left = std::max(0.0, crossed.left - share * flow.weight(place));
        crossed.unfixed -= flow.weight(place);
      }
    }
    links_[fullest].unfixed = 0;
  }
}

}  // namespace lockstep::sim
