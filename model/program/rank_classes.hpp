#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// Where ranks stand that exchange something in which others take no part: those that compute one
/// replica of the model are neighbours. By rank; both empty: no ranks have neighbours of their own.
struct Neighbourhoods {
  std::vector<uint32_t> of_rank;  ///< which of them, from 0 on
  /// Ranks of one column send to each other; ranks of different columns meet in collectives alone.
  /// Empty: a neighbourhood is one column.
  std::vector<uint32_t> columns;
  /// They are the ranks of a node, who exchange nothing by themselves.
  bool are_nodes = false;
};

/// What a group of some ranks is, seen from the rank that runs for its class.
struct GroupOfClasses {
  /// Each other rank of the classes is in a group of its own that does the same, or in this one.
  bool stands_for_all = false;
  uint32_t of_class = 0;          ///< members that are of the class of this rank, itself included
  bool is_of_neighbours = false;  ///< all members are
};

/// A partition of the ranks of a world into classes that do the same: what one of a class does, all
/// of it do at the same time. Classes are numbered in the order of their first ranks, each of which
/// stands for its class.
///
/// Where ranks exchange something with their neighbours alone, a class has ranks in each of several
/// neighbourhoods that are alike, and in each of several columns of these that are: what its first
/// rank exchanges with the first ranks of other classes, the others exchange among themselves.
class RankClasses {
 public:
  /// `class_of_rank`: by rank, numbered as above; at least one rank. A class has the same columns
  /// in each of its neighbourhoods, and one rank in each of these.
  explicit RankClasses(std::vector<uint32_t> class_of_rank, Neighbourhoods neighbourhoods = {});

  size_t ranks() const { return class_of_rank_.size(); }
  size_t size() const { return first_.size(); }
  size_t of(size_t rank) const { return class_of_rank_[rank]; }
  /// The rank that stands for a class.
  int32_t first(size_t number) const { return first_[number]; }
  size_t ranks_in(size_t number) const { return ranks_in_[number]; }
  bool is_first(int32_t rank) const { return first_[of(static_cast<size_t>(rank))] == rank; }
  bool have_neighbours() const { return !neighbourhoods_.of_rank.empty(); }
  /// Whether ranks exchange something in which others take no part.
  bool exchange_with_neighbours() const { return have_neighbours() && !neighbourhoods_.are_nodes; }
  /// Whether some class has several columns of a neighbourhood.
  bool have_columns() const { return have_columns_; }
  /// Whether what the first ranks of two classes send to each other stands for the others of both.
  bool are_neighbours(size_t a, size_t b) const;
  /// Whom `rank` means where the first rank of its class names `named`: the one that is to it what
  /// that is to the first, if they are neighbours.
  int32_t meant_by(int32_t rank, int32_t named) const;

  /// Of a group, as the first rank of this class sees it, which may be in it or not.
  GroupOfClasses group_of(size_t number, std::span<const int32_t> members) const;
  /// The members of the group in which `rank` is where the first rank of its class is in that of
  /// `members`, of which it is known that it stands for all.
  std::vector<int32_t> group_meant_by(int32_t rank, std::span<const int32_t> members) const;
  /// Where the members are ranks of one column, and others do the same in each of their
  /// neighbourhoods: the members of each other group; else nothing.
  std::vector<std::vector<int32_t>> other_columns(std::span<const int32_t> members) const;

 private:
  uint32_t neighbourhood_of(int32_t rank) const {
    return neighbourhoods_.of_rank[static_cast<size_t>(rank)];
  }
  uint32_t column_of(int32_t rank) const {
    return neighbourhoods_.columns.empty() ? 0 : neighbourhoods_.columns[static_cast<size_t>(rank)];
  }
  /// In its neighbourhood.
  std::pair<uint32_t, size_t> place_of(int32_t rank) const {
    return {column_of(rank), of(static_cast<size_t>(rank))};
  }
  /// Of this class, in one neighbourhood.
  const std::vector<uint32_t>& columns_of(size_t number) const { return columns_[number]; }
  /// And others do the same in the same columns.
  bool are_of_one_column(std::span<const int32_t> members) const;
  bool have_all_columns(std::span<const int32_t> members) const;
  int32_t at(uint32_t neighbourhood, uint32_t column, size_t number) const;
  void list_neighbours();

  std::vector<uint32_t> class_of_rank_;
  Neighbourhoods neighbourhoods_;
  std::vector<int32_t> first_;
  std::vector<size_t> ranks_in_;
  std::vector<std::vector<uint32_t>> columns_;  ///< by class, if there are neighbours
  bool have_columns_ = false;
  std::vector<int32_t> neighbours_;      ///< by neighbourhood, column and class
  std::vector<size_t> first_neighbour_;  ///< by neighbourhood: where it begins in these; the end
};

}  // namespace lockstep
