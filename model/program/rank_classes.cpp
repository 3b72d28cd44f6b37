#include "model/program/rank_classes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "model/core/ensure.hpp"

namespace lockstep {

RankClasses::RankClasses(std::vector<uint32_t> class_of_rank, Neighbourhoods neighbourhoods)
    : class_of_rank_(std::move(class_of_rank)), neighbourhoods_(std::move(neighbourhoods)) {
  for (size_t rank = 0; rank < class_of_rank_.size(); ++rank) {
    const size_t number = class_of_rank_[rank];
    ensure(number <= first_.size(), "classes are numbered in the order of their first ranks");
    if (number == first_.size()) {
      first_.push_back(static_cast<int32_t>(rank));
      ranks_in_.push_back(0);
    }
    ++ranks_in_[number];
  }
  if (!have_neighbours()) {
    return;
  }
  ensure(neighbourhoods_.of_rank.size() == ranks(), "each rank has a neighbourhood");
  ensure(neighbourhoods_.columns.empty() || neighbourhoods_.columns.size() == ranks(),
         "each rank has a column");
  list_neighbours();
  columns_.resize(size());
  for (int32_t rank = 0; rank < static_cast<int32_t>(ranks()); ++rank) {
    const size_t number = of(static_cast<size_t>(rank));
    if (neighbourhood_of(rank) == neighbourhood_of(first_[number])) {
      columns_[number].push_back(column_of(rank));
      have_columns_ = have_columns_ || columns_[number].size() > 1;
    }
  }
}

void RankClasses::list_neighbours() {
  first_neighbour_.assign(*std::ranges::max_element(neighbourhoods_.of_rank) + size_t{2}, 0);
  for (const uint32_t neighbourhood : neighbourhoods_.of_rank) {
    ++first_neighbour_[neighbourhood + 1];
  }
  std::partial_sum(first_neighbour_.begin(), first_neighbour_.end(), first_neighbour_.begin());
  neighbours_.resize(ranks());
  std::vector<size_t> next(first_neighbour_.begin(), first_neighbour_.end());
  for (int32_t rank = 0; rank < static_cast<int32_t>(ranks()); ++rank) {
    neighbours_[next[neighbourhood_of(rank)]++] = rank;
  }
  for (size_t each = 0; each + 1 < first_neighbour_.size(); ++each) {
    const auto begin = neighbours_.begin() + static_cast<std::ptrdiff_t>(first_neighbour_[each]);
    const auto end = neighbours_.begin() + static_cast<std::ptrdiff_t>(first_neighbour_[each + 1]);
    std::sort(begin, end, [this](int32_t a, int32_t b) { return place_of(a) < place_of(b); });
    ensure(
        std::adjacent_find(
            begin, end, [this](int32_t a, int32_t b) { return place_of(a) == place_of(b); }) == end,
        "a class has one rank in each column");
  }
}

int32_t RankClasses::at(uint32_t neighbourhood, uint32_t column, size_t number) const {
  const auto begin =
      neighbours_.begin() + static_cast<std::ptrdiff_t>(first_neighbour_[neighbourhood]);
  const auto end =
      neighbours_.begin() + static_cast<std::ptrdiff_t>(first_neighbour_[neighbourhood + 1]);
  const std::pair<uint32_t, size_t> wanted(column, number);
  const auto found = std::lower_bound(begin, end, wanted, [this](int32_t rank, const auto& place) {
    return place_of(rank) < place;
  });
  ensure(found != end && place_of(*found) == wanted, "a class has a rank in each of its columns");
  return *found;
}

bool RankClasses::are_neighbours(size_t a, size_t b) const {
  return have_neighbours() && neighbourhood_of(first_[a]) == neighbourhood_of(first_[b]) &&
         column_of(first_[a]) == column_of(first_[b]);
}

int32_t RankClasses::meant_by(int32_t rank, int32_t named) const {
  const size_t number = of(static_cast<size_t>(named));
  return are_neighbours(number, of(static_cast<size_t>(rank))) && is_first(named)
             ? at(neighbourhood_of(rank), column_of(rank), number)
             : named;
}

bool RankClasses::are_of_one_column(std::span<const int32_t> members) const {
  const std::vector<uint32_t>& columns = columns_of(of(static_cast<size_t>(members.front())));
  return std::ranges::all_of(members, [&](int32_t member) {
    return column_of(member) == column_of(members.front()) &&
           columns_of(of(static_cast<size_t>(member))) == columns;
  });
}

// Of each neighbourhood and class in the group.
bool RankClasses::have_all_columns(std::span<const int32_t> members) const {
  if (members.size() == ranks()) {
    return true;
  }
  std::map<std::pair<uint32_t, size_t>, size_t> counts;
  for (const int32_t member : members) {
    ++counts[{neighbourhood_of(member), of(static_cast<size_t>(member))}];
  }
  return std::ranges::all_of(counts, [this](const auto& entry) {
    return entry.second == columns_of(entry.first.second).size();
  });
}

GroupOfClasses RankClasses::group_of(size_t number, std::span<const int32_t> members) const {
  if (members.size() == ranks()) {
    return {true, static_cast<uint32_t>(ranks_in_[number]), false};
  }
  std::map<size_t, size_t> counts;
  for (const int32_t member : members) {
    ++counts[of(static_cast<size_t>(member))];
  }
  GroupOfClasses group;
  const auto own_count = counts.find(number);  // none of a class that has no part in it
  group.of_class = own_count == counts.end() ? 0 : static_cast<uint32_t>(own_count->second);
  bool is_of_one_column = false;
  if (have_neighbours()) {
    const uint32_t own = neighbourhood_of(first_[number]);
    group.is_of_neighbours = std::ranges::all_of(
        members, [&](int32_t member) { return neighbourhood_of(member) == own; });
    is_of_one_column = !have_all_columns(members);
    if (is_of_one_column &&
        (!are_of_one_column(members) || column_of(members.front()) != column_of(first_[number]))) {
      return group;
    }
  }
  const bool is_whole = std::ranges::all_of(counts, [&](const auto& entry) {
    const size_t groups = is_of_one_column ? columns_of(entry.first).size() : 1;
    return entry.second * groups == ranks_in_[entry.first];
  });
  group.stands_for_all = is_whole || group.is_of_neighbours;
  return group;
}

std::vector<int32_t> RankClasses::group_meant_by(int32_t rank,
                                                 std::span<const int32_t> members) const {
  std::vector<int32_t> meant(members.begin(), members.end());
  if (!have_neighbours()) {
    return meant;
  }
  const GroupOfClasses group = group_of(of(static_cast<size_t>(rank)), members);
  const bool keeps_columns = have_all_columns(members);
  for (int32_t& member : meant) {
    member = at(neighbourhood_of(group.is_of_neighbours ? rank : member),
                column_of(keeps_columns ? member : rank), of(static_cast<size_t>(member)));
  }
  std::ranges::sort(meant);
  return meant;
}

std::vector<std::vector<int32_t>> RankClasses::other_columns(
    std::span<const int32_t> members) const {
  std::vector<std::vector<int32_t>> others;
  if (!have_columns_ || members.empty() || have_all_columns(members) ||
      !are_of_one_column(members)) {
    return others;
  }
  for (const uint32_t column : columns_of(of(static_cast<size_t>(members.front())))) {
    if (column == column_of(members.front())) {
      continue;
    }
    std::vector<int32_t>& other = others.emplace_back();
    for (const int32_t member : members) {
      other.push_back(at(neighbourhood_of(member), column, of(static_cast<size_t>(member))));
    }
  }
  return others;
}

}  // namespace lockstep
