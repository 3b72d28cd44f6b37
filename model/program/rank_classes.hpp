#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/core/ensure.hpp"

namespace lockstep {

/// A partition of the ranks of a world into classes that do the same: what one of a class does, all
/// of it do at the same time. Classes are numbered in the order of their first ranks, each of which
/// stands for its class.
///
/// Where ranks exchange something with their neighbours alone (those with whom they compute one
/// replica), a class has a rank in each of several neighbourhoods that are alike: what its first
/// rank exchanges with the first ranks of other classes, the others exchange among themselves.
class RankClasses {
 public:
  /// `class_of_rank`: by rank, numbered as above; at least one rank. `neighbourhoods`: by rank, in
  /// each of which a class has one rank at most; empty: no ranks have neighbours of their own.
  explicit RankClasses(std::vector<uint32_t> class_of_rank,
                       std::vector<uint32_t> neighbourhoods = {})
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
    ensure(neighbourhoods_.empty() || neighbourhoods_.size() == ranks(),
           "each rank has a neighbourhood");
    for (size_t rank = 0; rank < neighbourhoods_.size(); ++rank) {
      rank_at_[{neighbourhoods_[rank], class_of_rank_[rank]}] = static_cast<int32_t>(rank);
    }
  }

  size_t ranks() const { return class_of_rank_.size(); }
  size_t size() const { return first_.size(); }
  size_t of(size_t rank) const { return class_of_rank_[rank]; }
  /// The rank that stands for a class.
  int32_t first(size_t number) const { return first_[number]; }
  size_t ranks_in(size_t number) const { return ranks_in_[number]; }
  bool is_first(int32_t rank) const { return first_[of(static_cast<size_t>(rank))] == rank; }
  bool have_neighbours() const { return !neighbourhoods_.empty(); }
  /// Whether what the first ranks of two classes exchange stands for the others of both.
  bool are_neighbours(size_t a, size_t b) const {
    return have_neighbours() && neighbourhood_of(a) == neighbourhood_of(b);
  }
  /// Whom `rank` means where the first rank of its class names `named`: the one that is to it what
  /// that is to the first, if they are neighbours.
  int32_t meant_by(int32_t rank, int32_t named) const {
    const size_t number = of(static_cast<size_t>(named));
    return are_neighbours(number, of(static_cast<size_t>(rank))) && is_first(named)
               ? rank_at_.at({neighbourhoods_[static_cast<size_t>(rank)], number})
               : named;
  }

 private:
  uint32_t neighbourhood_of(size_t number) const {
    return neighbourhoods_[static_cast<size_t>(first_[number])];
  }

  std::vector<uint32_t> class_of_rank_;
  std::vector<uint32_t> neighbourhoods_;
  std::vector<int32_t> first_;
  std::vector<size_t> ranks_in_;
  std::map<std::pair<uint32_t, size_t>, int32_t> rank_at_;  ///< by neighbourhood and class
};

}  // namespace lockstep
