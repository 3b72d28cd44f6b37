#include "sim/alike_columns.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace lockstep::sim {

namespace {

using LinkWeights = std::map<LinkIndex, uint32_t>;

void add_weights(const TrafficPattern& pattern, LinkWeights& sum) {
  for (size_t place = 0; place < pattern.links.size(); ++place) {
    sum[pattern.links[place]] += pattern.weights[place];
  }
}

/// Of each link its capacity, what the pattern takes of it, and what all do.
using LinkShares = std::vector<std::tuple<BytesPerSecond, uint32_t, uint32_t>>;

LinkShares shares_of(const TrafficPattern& pattern, const std::vector<BytesPerSecond>& capacities,
                     const LinkWeights& sum) {
  LinkShares shares;
  for (size_t place = 0; place < pattern.links.size(); ++place) {
    const LinkIndex link = pattern.links[place];
    shares.emplace_back(capacities[link], pattern.weights[place], sum.at(link));
  }
  std::ranges::sort(shares);
  return shares;
}

}  // namespace

bool add_other_columns(const std::vector<TrafficPattern>& others,
                       const std::vector<BytesPerSecond>& capacities, TrafficPattern& pattern) {
  if (others.empty()) {
    return true;
  }
  pattern.columns = static_cast<uint32_t>(others.size() + 1);
  LinkWeights sum;
  add_weights(pattern, sum);
  for (const TrafficPattern& other : others) {
    add_weights(other, sum);
  }
  const LinkShares own = shares_of(pattern, capacities, sum);
  const bool alike = std::ranges::all_of(others, [&](const TrafficPattern& other) {
    return other.latency == pattern.latency && other.parts == pattern.parts &&
           shares_of(other, capacities, sum) == own;
  });
  std::vector<uint32_t> with_columns;
  for (const LinkIndex link : pattern.links) {
    with_columns.push_back(sum.at(link));
  }
  if (with_columns != pattern.weights) {
    pattern.with_columns = std::move(with_columns);
  }
  return alike;
}

namespace {

/// Links of one capacity on a node.
struct CrossedLinks {
  std::vector<LinkIndex> links;
  uint32_t weight = 0;
  bool differ = false;

  void add(LinkIndex link, uint32_t crossings) {
    differ = differ || (!links.empty() && weight != crossings);
    weight = crossings;
    links.push_back(link);
  }
};

}  // namespace

std::vector<LinkIndex> links_uneven_between_columns(
    const TrafficPattern& pattern, const std::vector<BytesPerSecond>& capacities,
    int64_t links_per_node, const std::function<size_t(int64_t)>& members_on) {
  std::map<std::pair<int64_t, BytesPerSecond>, CrossedLinks> alike;
  for (size_t place = 0; place < pattern.links.size(); ++place) {
    const LinkIndex link = pattern.links[place];
    alike[{link / links_per_node, capacities[link]}].add(link, pattern.weights[place]);
  }
  std::vector<LinkIndex> uneven;
  for (const auto& [where, crossed] : alike) {
    const size_t members = members_on(where.first);
    if (crossed.differ || members == 0 || crossed.links.size() % members != 0) {
      uneven.insert(uneven.end(), crossed.links.begin(), crossed.links.end());
    }
  }
  std::ranges::sort(uneven);
  return uneven;
}

}  // namespace lockstep::sim
