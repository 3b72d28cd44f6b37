#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

/// Things by index, of which each rank has its own, near to each other in memory: what a rank does
/// next mostly meets what it did last. Freed places are used again, by the same rank; the `next` of
/// a thing links them.
template <class Thing>
class LocalPlaces {
 public:
  uint32_t take(uint32_t rank) {
    if (free_.size() <= rank) {
      free_.resize(rank + 1);
    }
    Free& own = free_[rank];
    if (own.first == no_index) [[unlikely]] {
      add_places(own);
    }
    const uint32_t index = own.first;
    own.first = (*this)[index].next;
    return index;
  }
  void give_back(uint32_t rank, uint32_t index) {
    (*this)[index].next = free_[rank].first;
    free_[rank].first = index;
  }
  size_t size() const { return size_; }
  /// Stays where it is, whatever is taken later.
  Thing& operator[](uint32_t index) { return blocks_[index / of_block][index % of_block]; }

 private:
  /// Places of a rank, the one to take next in front.
  struct Free {
    uint32_t first = no_index;
    uint32_t places = 0;  ///< that it has got in all
  };

  // Few for a rank that has little in flight, more for one that has much.
  void add_places(Free& own) {
    constexpr uint32_t fewest = 2;
    constexpr uint32_t most = 64;
    const uint32_t more = std::clamp(own.places, fewest, most);
    const auto first = static_cast<uint32_t>(size_);
    size_ += more;
    while (blocks_.size() * of_block < size_) {
      blocks_.push_back(std::make_unique<Thing[]>(of_block));
    }
    for (uint32_t index = first + more; index > first; --index) {
      (*this)[index - 1].next = own.first;
      own.first = index - 1;
    }
    own.places += more;
  }

  static constexpr size_t of_block = 1024;

  std::vector<std::unique_ptr<Thing[]>> blocks_;
  size_t size_ = 0;
  std::vector<Free> free_;  ///< by rank
};

}  // namespace lockstep::sim
