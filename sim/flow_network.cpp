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
  return std::any_of(flow.links->begin(), flow.links->end(),
                     [this](LinkIndex link) { return links_[link].flows.size() > 1; });
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
  flow.links = plan.links;
  flow.remaining_bytes = static_cast<double>(plan.volume.count());
  flow.since = now;
  flow.rate = 0;
  flow.active = true;
  ++flow.generation;
  BytesPerSecond bottleneck = BytesPerSecond::max();
  for (const LinkIndex link : *plan.links) {
    links_[link].flows.push_back(index);
    bottleneck = std::min(bottleneck, capacities_[link]);
  }
  if (!shares(flow)) {
    flow.rate = static_cast<double>(bottleneck.count());
    forecasts.push_back({index, flow.generation, now + plan.volume / bottleneck});
  } else {
    share_anew(now, {index}, forecasts);
  }
  return index;
}

void FlowNetwork::leave_links(uint32_t index, std::vector<uint32_t>& neighbours) {
  for (const LinkIndex link : *flows_[index].links) {
    auto& flows = links_[link].flows;
    flows.erase(std::find(flows.begin(), flows.end(), index));
    neighbours.insert(neighbours.end(), flows.begin(), flows.end());
  }
  std::sort(neighbours.begin(), neighbours.end());
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
    for (const LinkIndex link : *flows_[flows[next]].links) {
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
    links_[link].unfixed = static_cast<uint32_t>(links_[link].flows.size());
  }
  size_t unfixed = flows.size();
  while (unfixed > 0) {
    double share = std::numeric_limits<double>::infinity();
    LinkIndex fullest = 0;
    for (const LinkIndex link : links) {
      if (links_[link].unfixed > 0 && links_[link].left / links_[link].unfixed < share) {
        share = links_[link].left / links_[link].unfixed;
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
      for (const LinkIndex link : *flow.links) {
        links_[link].left = std::max(0.0, links_[link].left - share);
        --links_[link].unfixed;
      }
    }
    links_[fullest].unfixed = 0;
  }
}

}  // namespace lockstep::sim
