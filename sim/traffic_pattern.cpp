#include "sim/traffic_pattern.hpp"

#include <algorithm>
#include <bit>

#include "sim/in_order_tree.hpp"

namespace lockstep::sim {

namespace {

using Nodes = std::vector<std::vector<DeviceNumber>>;

Nodes by_node(const Members& members) {
  std::vector<DeviceNumber> sorted(members.devices.begin(), members.devices.end());
  std::sort(sorted.begin(), sorted.end());
  Nodes nodes;
  int64_t last = -1;
  for (const DeviceNumber device : sorted) {
    const int64_t node = device.value / members.devices_per_node;
    if (node != last) {
      nodes.emplace_back();
      last = node;
    }
    nodes.back().push_back(device);
  }
  return nodes;
}

size_t channel_count(const Nodes& nodes) {
  size_t least = nodes.size() > 1 ? nodes.front().size() : 1;
  for (const auto& node : nodes) {
    least = std::min(least, node.size());
  }
  return least;
}

// Each node's devices begin at a different place in every channel.
std::vector<DeviceNumber> rotated(const std::vector<DeviceNumber>& node, size_t channel,
                                  size_t channels) {
  std::vector<DeviceNumber> order = node;
  const auto first = static_cast<std::ptrdiff_t>(channel * node.size() / channels);
  std::rotate(order.begin(), order.begin() + first, order.end());
  return order;
}

// The slowest of all walks of `steps` consecutive hops around a ring.
Time longest_walk(const std::vector<Time>& hops, int64_t steps) {
  const auto size = static_cast<int64_t>(hops.size());
  Time round;
  for (const Time hop : hops) {
    round += hop;
  }
  Time window;
  for (int64_t hop = 0; hop < steps % size; ++hop) {
    window += hops[static_cast<size_t>(hop)];
  }
  Time longest = window;
  for (int64_t hop = 0; hop < size; ++hop) {
    window += hops[static_cast<size_t>((hop + steps % size) % size)];
    window -= hops[static_cast<size_t>(hop)];
    longest = std::max(longest, window);
  }
  return round * (steps / size) + longest;
}

// Every member to the one `distance` after it. Gives the slowest message's latency.
Time add_round(TrafficCounter& counter, const Members& members, size_t distance) {
  const size_t size = members.devices.size();
  Time slowest;
  for (size_t member = 0; member < size; ++member) {
    slowest = std::max(
        slowest, counter.add(members.devices[member], members.devices[(member + distance) % size]));
  }
  return slowest;
}

// One of the two trees, over the first device of each node; chains below. Gives the latency of the
// longest way down.
Time add_tree(TrafficCounter& counter, const Nodes& nodes, size_t channel, size_t channels,
              size_t shift) {
  std::vector<Time> depth(nodes.size());
  const auto both_ways = [&counter](DeviceNumber parent, DeviceNumber child) {
    counter.add(child, parent);
    return counter.add(parent, child);
  };
  const auto head = [&](size_t node) {
    return nodes[node][channel * nodes[node].size() / channels];
  };
  in_order_tree(1, nodes.size(), [&](size_t parent_position, size_t child_position) {
    const size_t parent = (parent_position - 1 + shift) % nodes.size();
    const size_t child = (child_position - 1 + shift) % nodes.size();
    depth[child] = depth[parent] + both_ways(head(parent), head(child));
  });
  Time longest;
  for (size_t node = 0; node < nodes.size(); ++node) {
    const std::vector<DeviceNumber> chain = rotated(nodes[node], channel, channels);
    Time way = depth[node];
    for (size_t place = 1; place < chain.size(); ++place) {
      way += both_ways(chain[place - 1], chain[place]);
    }
    longest = std::max(longest, way);
  }
  return longest;
}

}  // namespace

Time TrafficCounter::add(DeviceNumber from, DeviceNumber to, uint32_t weight) {
  const std::vector<LinkId> route = topology_.route(from, to);
  for (const LinkId link : route) {
    uses_.emplace_back(link.value, weight);
  }
  if (uses_.size() > merge_at_) {
    merge();
    merge_at_ = std::max(merge_at_, uses_.size() * 2);
  }
  return topology_.latency(route);
}

void TrafficCounter::merge() {
  std::sort(uses_.begin(), uses_.end());
  size_t merged = 0;
  for (size_t next = 0; next < uses_.size(); ++next) {
    if (next > 0 && uses_[next].first == uses_[merged - 1].first) {
      uses_[merged - 1].second += uses_[next].second;
    } else {
      uses_[merged++] = uses_[next];
    }
  }
  uses_.resize(merged);
}

void TrafficCounter::finish(TrafficPattern& pattern) {
  merge();
  for (const auto& [link, weight] : uses_) {
    pattern.links.push_back(link);
    pattern.weights.push_back(weight);
  }
  uses_.clear();
}

TrafficPattern ring_pattern(const Topology& topology, const Members& members, int64_t steps) {
  const Nodes nodes = by_node(members);
  const size_t channels = channel_count(nodes);
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  pattern.parts = static_cast<int64_t>(channels);
  for (size_t channel = 0; channel < channels; ++channel) {
    std::vector<DeviceNumber> order;
    for (const auto& node : nodes) {
      const std::vector<DeviceNumber> part = rotated(node, channel, channels);
      order.insert(order.end(), part.begin(), part.end());
    }
    std::vector<Time> hops;
    for (size_t place = 0; place < order.size(); ++place) {
      hops.push_back(counter.add(order[place], order[(place + 1) % order.size()]));
    }
    pattern.latency = std::max(pattern.latency, longest_walk(hops, steps));
  }
  counter.finish(pattern);
  return pattern;
}

TrafficPattern double_tree_pattern(const Topology& topology, const Members& members) {
  const Nodes nodes = by_node(members);
  const size_t channels = channel_count(nodes);
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  pattern.parts = static_cast<int64_t>(channels * 2);
  for (size_t channel = 0; channel < channels; ++channel) {
    for (const size_t shift : {0, 1}) {
      const Time down = add_tree(counter, nodes, channel, channels, shift);
      pattern.latency = std::max(pattern.latency, down * 2);
    }
  }
  counter.finish(pattern);
  return pattern;
}

TrafficPattern binomial_pattern(const Topology& topology, const Members& members, size_t root) {
  const size_t size = members.devices.size();
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  for (size_t step = std::bit_ceil(size) / 2; step > 0; step /= 2) {
    Time slowest;
    for (size_t from = 0; from + step < size; from += 2 * step) {
      slowest = std::max(slowest, counter.add(members.devices[(root + from) % size],
                                              members.devices[(root + from + step) % size]));
    }
    pattern.latency += slowest;
  }
  counter.finish(pattern);
  return pattern;
}

TrafficPattern linear_pattern(const Topology& topology, const Members& members, size_t root,
                              bool to_root) {
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  for (size_t member = 0; member < members.devices.size(); ++member) {
    const DeviceNumber from = members.devices[to_root ? member : root];
    pattern.latency += counter.add(from, members.devices[to_root ? root : member]);
  }
  counter.finish(pattern);
  return pattern;
}

TrafficPattern ring_and_gather_pattern(const Topology& topology, const Members& members,
                                       size_t root) {
  const size_t size = members.devices.size();
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  std::vector<Time> hops;
  for (size_t member = 0; member < size; ++member) {
    hops.push_back(counter.add(members.devices[member], members.devices[(member + 1) % size],
                               static_cast<uint32_t>(size - 1)));
    pattern.latency += counter.add(members.devices[member], members.devices[root]);
  }
  pattern.latency += longest_walk(hops, static_cast<int64_t>(size) - 1);
  counter.finish(pattern);
  return pattern;
}

TrafficPattern pairwise_pattern(const Topology& topology, const Members& members) {
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  for (size_t distance = 1; distance < members.devices.size(); ++distance) {
    pattern.latency += add_round(counter, members, distance);
  }
  counter.finish(pattern);
  return pattern;
}

TrafficPattern dissemination_pattern(const Topology& topology, const Members& members) {
  TrafficPattern pattern;
  TrafficCounter counter(topology);
  for (size_t distance = 1; distance < members.devices.size(); distance *= 2) {
    pattern.latency += add_round(counter, members, distance);
  }
  counter.finish(pattern);
  return pattern;
}

}  // namespace lockstep::sim
