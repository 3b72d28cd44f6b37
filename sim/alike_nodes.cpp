#include "sim/alike_nodes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "sim/in_order_tree.hpp"

namespace lockstep::sim {

namespace {

/// How many edges the node at each position of the tree has, and how many lie between the root and
/// the node that is farthest from it.
struct TreeShape {
  std::vector<uint32_t> edges;
  int64_t depth = 0;
};

TreeShape tree_shape(int64_t nodes) {
  const auto count = static_cast<size_t>(nodes);
  TreeShape shape{std::vector<uint32_t>(count, 0), 0};
  std::vector<int64_t> depths(count, 0);
  in_order_tree(1, count, [&](size_t parent, size_t child) {
    ++shape.edges[parent - 1];
    ++shape.edges[child - 1];
    depths[child - 1] = depths[parent - 1] + 1;
    shape.depth = std::max(shape.depth, depths[child - 1]);
  });
  return shape;
}

// In both trees, of which the second is shifted by one node.
uint32_t edges_of(const TreeShape& shape, size_t node) {
  const size_t nodes = shape.edges.size();
  return shape.edges[node] + shape.edges[(node + nodes - 1) % nodes];
}

/// Adds up the routes of messages by the place of a link in its node.
class PlaceCounter {
 public:
  PlaceCounter(const Topology& topology, int64_t links_per_node)
      : topology_(topology), weights_(static_cast<size_t>(links_per_node), 0) {}

  /// Also where it crosses two nodes: all nodes send and receive the same. Gives its latency.
  Time add(DeviceNumber from, DeviceNumber to, uint32_t weight) {
    const std::vector<LinkId> route = topology_.route(from, to);
    for (const LinkId link : route) {
      weights_[link.value % weights_.size()] += weight;
    }
    return topology_.latency(route);
  }
  const std::vector<uint32_t>& weights() const { return weights_; }

 private:
  const Topology& topology_;
  std::vector<uint32_t> weights_;
};

// The slowest of all walks of `steps` consecutive hops around a ring of so many repetitions of
// these hops.
Time longest_walk_around(const std::vector<Time>& hops, int64_t repetitions, int64_t steps) {
  const auto period = static_cast<int64_t>(hops.size());
  Time once;
  for (const Time hop : hops) {
    once += hop;
  }
  const int64_t rest = steps % (period * repetitions);
  const int64_t rounds = steps / (period * repetitions);
  Time longest;
  for (int64_t first = 0; first < period; ++first) {
    Time window;
    for (int64_t hop = 0; hop < rest % period; ++hop) {
      window += hops[static_cast<size_t>((first + hop) % period)];
    }
    longest = std::max(longest, window);
  }
  return once * (rounds * repetitions + rest / period) + longest;
}

// The links of a class that have a weight.
void add_places(size_t number, const std::vector<uint32_t>& weights,
                std::vector<LinkIndex>& links) {
  for (size_t place = 0; place < weights.size(); ++place) {
    if (weights[place] > 0) {
      links.push_back(static_cast<LinkIndex>(number * weights.size() + place));
    }
  }
}

std::vector<DeviceNumber> begun_at(const std::vector<DeviceNumber>& places, size_t first) {
  std::vector<DeviceNumber> order = places;
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  return order;
}

}  // namespace

AlikeNodes::AlikeNodes(RankClasses nodes, std::vector<bool> runs, std::vector<DeviceNumber> places,
                       const Topology& topology)
    : nodes_(std::move(nodes)), runs_(std::move(runs)), places_(std::move(places)) {
  const int64_t all = topology.nodes();
  devices_per_node_ = topology.devices() / all;
  links_per_node_ = topology.link_count() / all;
}

// A node is alone where one of its ranks is simulated. The others differ by their edges in trees.
std::optional<AlikeNodes> AlikeNodes::of(const std::vector<DeviceNumber>& devices,
                                         const Topology& topology, const RankClasses& ranks) {
  const auto per_node = static_cast<uint32_t>(topology.devices() / topology.nodes());
  size_t on_node = 0;
  while (on_node < devices.size() && devices[on_node].value < per_node) {
    ++on_node;
  }
  constexpr size_t nodes_min = 3;  // of fewer, hardly any is like another
  if (on_node == 0 || devices.size() % on_node != 0 || devices.size() != ranks.ranks() ||
      devices.size() / on_node < nodes_min) {
    return std::nullopt;
  }
  std::vector<bool> is_alone(devices.size() / on_node, false);
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const auto node = static_cast<uint32_t>(rank / on_node);
    if (devices[rank].value != devices[rank % on_node].value + node * per_node) {
      return std::nullopt;
    }
    is_alone[node] = is_alone[node] || ranks.first(ranks.of(rank)) == static_cast<int32_t>(rank);
  }
  const TreeShape shape = tree_shape(static_cast<int64_t>(is_alone.size()));
  std::map<std::pair<size_t, uint32_t>, uint32_t> known;
  std::vector<uint32_t> class_of_node;
  class_of_node.reserve(is_alone.size());
  std::vector<bool> runs;
  for (size_t node = 0; node < is_alone.size(); ++node) {
    const auto what =
        is_alone[node] ? std::pair(node + 1, 0u) : std::pair(size_t{0}, edges_of(shape, node));
    const auto [found, is_new] = known.try_emplace(what, static_cast<uint32_t>(known.size()));
    class_of_node.push_back(found->second);
    if (is_new) {
      runs.push_back(is_alone[node]);
    }
  }
  std::vector<DeviceNumber> places(devices.begin(),
                                   devices.begin() + static_cast<std::ptrdiff_t>(on_node));
  std::sort(places.begin(), places.end());
  return AlikeNodes(RankClasses(std::move(class_of_node)), std::move(runs), std::move(places),
                    topology);
}

LinkIndex AlikeNodes::number_of(LinkId link) const {
  const auto per_node = static_cast<uint32_t>(links_per_node_);
  return static_cast<LinkIndex>(class_of(link.value / per_node)) * per_node + link.value % per_node;
}

TrafficPattern AlikeNodes::ring(const Topology& topology, int64_t steps) const {
  const size_t channels = places_.size();
  PlaceCounter counter(topology, links_per_node_);
  TrafficPattern pattern;
  pattern.parts = static_cast<int64_t>(channels);
  for (size_t channel = 0; channel < channels; ++channel) {
    const std::vector<DeviceNumber> order = begun_at(places_, channel);
    std::vector<Time> hops;
    for (size_t place = 0; place + 1 < order.size(); ++place) {
      hops.push_back(counter.add(order[place], order[place + 1], 1));
    }
    hops.push_back(counter.add(order.back(), on_next_node(order.front()), 1));
    pattern.latency = std::max(pattern.latency, longest_walk_around(hops, nodes(), steps));
  }
  for (size_t number = 0; number < size(); ++number) {
    add_links(number, counter.weights(), pattern);
  }
  return pattern;
}

TrafficPattern AlikeNodes::double_tree(const Topology& topology) const {
  const size_t channels = places_.size();
  const TreeShape shape = tree_shape(nodes());
  PlaceCounter within(topology, links_per_node_);
  PlaceCounter between(topology, links_per_node_);
  TrafficPattern pattern;
  pattern.parts = static_cast<int64_t>(channels * 2);
  constexpr uint32_t trees = 2;
  for (size_t channel = 0; channel < channels; ++channel) {
    const std::vector<DeviceNumber> chain = begun_at(places_, channel);
    // An edge is a message to the other node and one from there.
    Time down = between.add(chain.front(), on_next_node(chain.front()), 1) * shape.depth;
    for (size_t place = 1; place < chain.size(); ++place) {
      within.add(chain[place], chain[place - 1], trees);
      down += within.add(chain[place - 1], chain[place], trees);
    }
    pattern.latency = std::max(pattern.latency, down * 2);
  }
  std::vector<uint32_t> edges;  // by class
  std::set<uint32_t> edges_where_none_runs;
  for (size_t number = 0; number < size(); ++number) {
    edges.push_back(edges_of(shape, static_cast<size_t>(nodes_.first(number))));
    if (!runs_[number]) {
      edges_where_none_runs.insert(edges.back());
    }
  }
  for (size_t number = 0; number < size(); ++number) {
    std::vector<uint32_t> weights = within.weights();
    for (size_t place = 0; place < weights.size(); ++place) {
      weights[place] += edges[number] * between.weights()[place];
    }
    add_links(number, weights, pattern);
    const bool stands_for_others =
        edges_where_none_runs.size() > edges_where_none_runs.count(edges[number]);
    if (runs_[number] && stands_for_others) {
      add_places(number, between.weights(), pattern.uneven);
    }
  }
  return pattern;
}

DeviceNumber AlikeNodes::on_next_node(DeviceNumber place) const {
  return DeviceNumber{static_cast<uint32_t>(place.value + devices_per_node_)};
}

void AlikeNodes::add_links(size_t number, const std::vector<uint32_t>& weights,
                           TrafficPattern& pattern) {
  add_places(number, weights, pattern.links);
  std::ranges::copy_if(weights, std::back_inserter(pattern.weights),
                       [](uint32_t weight) { return weight > 0; });
}

}  // namespace lockstep::sim
