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
  JoinedNodes(size_t nodes, size_t ranks_per_node, const std::vector<uint32_t>& neighbourhoods)
      : ranks_per_node_(ranks_per_node), joined_(nodes) {
    std::iota(joined_.begin(), joined_.end(), size_t{0});
    std::map<uint32_t, size_t> node_of_neighbourhood;
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

/// Units that are alike.
struct AlikeUnits {
  size_t first = 0;                              ///< unit
  std::vector<std::optional<uint32_t>> classes;  ///< of ranks, by place
};

/// The ranks of a unit in their order.
struct NodesTogether {
  std::vector<uint32_t> places;                 ///< what the rank at each is, and among whom
  std::map<uint32_t, uint32_t> neighbourhoods;  ///< numbered within the unit
  uint32_t ranks = 0;
  size_t classed = 0;           ///< ranks that have a class by now
  AlikeUnits* alike = nullptr;  ///< to which it belongs, once that was asked
};

/// The ranks of a column in their order.
struct RanksInOrder {
  std::vector<size_t> ranks;
  std::vector<size_t> what;  ///< of each its node, its number, and those on the same host link
};

void add_host_link(const std::vector<uint32_t>& numbers, const NodePlaces& places, size_t rank,
                   std::vector<size_t>& what) {
  const auto per_node = static_cast<size_t>(places.ranks_per_node);
  const auto per_link = static_cast<size_t>(places.ranks_per_host_link);
  const size_t first = rank - rank % per_node % per_link;
  const size_t node_end = rank - rank % per_node + per_node;
  const auto here = std::ptrdiff_t(what.size());
  what.insert(what.end(), numbers.begin() + std::ptrdiff_t(first),
              numbers.begin() + std::ptrdiff_t(std::min(first + per_link, node_end)));
  std::sort(what.begin() + here, what.end());
}

// Where each rank is a column, and its node the neighbourhood.
std::vector<size_t> first_ranks_of_nodes(const std::vector<uint32_t>& numbers,
                                         const NodePlaces& places) {
  const auto per_node = static_cast<size_t>(places.ranks_per_node);
  std::vector<size_t> firsts(numbers.size());
  std::vector<std::vector<size_t>> what(per_node);  // of the ranks of a node, by place
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    const size_t place = rank % per_node;
    what[place].assign(1, numbers[rank]);
    add_host_link(numbers, places, rank, what[place]);
    const auto first = std::ranges::find(what, what[place]) - what.begin();
    firsts[rank] = rank - place + static_cast<size_t>(first);
  }
  return firsts;
}

// By rank: the one at its place in the first column of its neighbourhood that is like its own.
std::vector<size_t> ranks_of_first_columns(const std::vector<uint32_t>& numbers,
                                           const NodePlaces& places,
                                           const Neighbourhoods& neighbourhoods) {
  if (neighbourhoods.are_nodes) {
    return first_ranks_of_nodes(numbers, places);
  }
  std::vector<size_t> firsts(numbers.size());
  std::iota(firsts.begin(), firsts.end(), size_t{0});
  if (neighbourhoods.columns.empty()) {
    return firsts;
  }
  std::map<std::pair<uint32_t, uint32_t>, RanksInOrder> columns;
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    RanksInOrder& column = columns[{neighbourhoods.of_rank[rank], neighbourhoods.columns[rank]}];
    column.ranks.push_back(rank);
    column.what.push_back(rank / static_cast<size_t>(places.ranks_per_node));
    column.what.push_back(numbers[rank]);
    add_host_link(numbers, places, rank, column.what);
  }
  std::map<std::pair<uint32_t, decltype(RanksInOrder::what)>, const RanksInOrder*> first_alike;
  for (const auto& [place, column] : columns) {
    const RanksInOrder& first =
        *first_alike.try_emplace({place.first, column.what}, &column).first->second;
    for (size_t at = 0; at < column.ranks.size(); ++at) {
      firsts[column.ranks[at]] = first.ranks[at];
    }
  }
  return firsts;
}

}  // namespace

std::optional<RankClasses> alike_units(const std::vector<uint32_t>& numbers,
                                       const NodePlaces& places, Neighbourhoods neighbourhoods) {
  const auto per_node = static_cast<size_t>(places.ranks_per_node);
  JoinedNodes nodes(numbers.size() / per_node, per_node, neighbourhoods.of_rank);
  const std::vector<size_t> firsts = ranks_of_first_columns(numbers, places, neighbourhoods);
  std::vector<NodesTogether> units(numbers.size() / per_node);  // by first node
  std::vector<uint32_t> place_in_unit(numbers.size());
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    NodesTogether& unit = units[nodes.unit_of(rank)];
    place_in_unit[rank] = unit.ranks++;
    unit.places.push_back(numbers[rank]);
    unit.places.push_back(place_in_unit[std::min(rank, firsts[rank])]);
    if (!neighbourhoods.of_rank.empty()) {
      const auto next = static_cast<uint32_t>(unit.neighbourhoods.size());
      unit.places.push_back(
          unit.neighbourhoods.try_emplace(neighbourhoods.of_rank[rank], next).first->second);
    }
  }
  std::map<std::vector<uint32_t>, AlikeUnits> alike;
  std::vector<uint32_t> class_of_rank;
  uint32_t next = 0;
  class_of_rank.reserve(numbers.size());
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    const size_t name = nodes.unit_of(rank);
    NodesTogether& unit = units[name];
    if (unit.alike == nullptr) {
      unit.alike = &alike.try_emplace(unit.places, AlikeUnits{name, {}}).first->second;
      unit.alike->classes.resize(unit.ranks);
    }
    AlikeUnits& same = *unit.alike;
    std::optional<uint32_t>& number = same.classes[unit.classed++];
    if (firsts[rank] > rank || (!number && same.first != name)) {
      return std::nullopt;
    }
    if (!number) {
      number = firsts[rank] == rank ? next++ : class_of_rank[firsts[rank]];
    }
    class_of_rank.push_back(*number);
  }
  return RankClasses(std::move(class_of_rank), std::move(neighbourhoods));
}

}  // namespace lockstep
