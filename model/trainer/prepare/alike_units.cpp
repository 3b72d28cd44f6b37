#include "model/trainer/prepare/alike_units.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace lockstep {

namespace {

/// Nodes that hold ranks of one neighbourhood, joined to units.
class JoinedNodes {
 public:
  JoinedNodes(size_t nodes, size_t ranks_per_node, const std::vector<int32_t>& neighbourhoods)
      : ranks_per_node_(ranks_per_node), joined_(nodes) {
    std::iota(joined_.begin(), joined_.end(), size_t{0});
    std::map<int32_t, size_t> node_of_neighbourhood;
    for (size_t rank = 0; rank < neighbourhoods.size(); ++rank) {
      const size_t node = rank / ranks_per_node_;
      const auto known = node_of_neighbourhood.try_emplace(neighbourhoods[rank], node).first;
      const size_t a = first_node(known->second);
      const size_t b = first_node(node);
      joined_[std::max(a, b)] = std::min(a, b);
    }
  }
  /// The first node of the unit that the rank is in.
  size_t unit_of(size_t rank) { return first_node(rank / ranks_per_node_); }

 private:
  size_t first_node(size_t node) {
    while (joined_[node] != node) {
      joined_[node] = joined_[joined_[node]];
      node = joined_[node];
    }
    return node;
  }

  size_t ranks_per_node_;
  std::vector<size_t> joined_;  ///< by node: itself, or one before it in its unit
};

/// The ranks of a unit in their order.
struct NodesTogether {
  std::vector<uint32_t> places;                ///< what the rank at each is, and among whom
  std::map<int32_t, uint32_t> neighbourhoods;  ///< numbered within the unit
  size_t classed = 0;                          ///< ranks that have a class by now
};

/// Units that are alike.
struct AlikeUnits {
  size_t first = 0;                              ///< unit
  std::vector<std::optional<uint32_t>> classes;  ///< of ranks, by place
};

}  // namespace

std::optional<RankClasses> alike_units(const std::vector<uint32_t>& numbers, int32_t ranks_per_node,
                                       const std::vector<int32_t>& neighbourhoods) {
  const auto per_node = static_cast<size_t>(ranks_per_node);
  JoinedNodes nodes(numbers.size() / per_node, per_node, neighbourhoods);
  std::vector<NodesTogether> units(numbers.size() / per_node);  // by first node
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    NodesTogether& unit = units[nodes.unit_of(rank)];
    unit.places.push_back(numbers[rank]);
    if (!neighbourhoods.empty()) {
      const auto next = static_cast<uint32_t>(unit.neighbourhoods.size());
      unit.places.push_back(
          unit.neighbourhoods.try_emplace(neighbourhoods[rank], next).first->second);
    }
  }
  std::map<std::vector<uint32_t>, AlikeUnits> alike;
  std::vector<uint32_t> class_of_rank;
  uint32_t next = 0;
  class_of_rank.reserve(numbers.size());
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    const size_t name = nodes.unit_of(rank);
    NodesTogether& unit = units[name];
    AlikeUnits& same = alike.try_emplace(unit.places, AlikeUnits{name, {}}).first->second;
    same.classes.resize(unit.places.size());
    std::optional<uint32_t>& number = same.classes[unit.classed++];
    if (!number) {
      if (same.first != name) {
        return std::nullopt;
      }
      number = next++;
    }
    class_of_rank.push_back(*number);
  }
  return RankClasses(std::move(class_of_rank), {neighbourhoods.begin(), neighbourhoods.end()});
}

}  // namespace lockstep
