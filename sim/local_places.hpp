#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::sim {

/// Things by index, of which each rank has its own, near to each other in memory: what a rank does
/// next mostly meets what it did last. Freed places are used again, by the same rank.
template <class Thing>
class LocalPlaces {
 public:
  uint32_t take(uint32_t rank) {
    if (free_.size() <= rank) {
      free_.resize(rank + 1);
    }
    std::vector<uint32_t>& own = free_[rank];
    if (own.empty()) {
      add_places(own);
    }
    const uint32_t index = own.back();
    own.pop_back();
    return index;
  }
  void give_back(uint32_t rank, uint32_t index) { free_[rank].push_back(index); }
  size_t size() const { return size_; }
  /// Stays where it is, whatever is taken later.
  Thing& operator[](uint32_t index) { return blocks_[index / of_block][index % of_block]; }

 private:
  // Few for a rank that has little in flight, more for one that has much.
  void add_places(std::vector<uint32_t>& own) {
    constexpr size_t fewest = 2;
    constexpr size_t most = 64;
    const size_t more = std::clamp(own.capacity(), fewest, most);
    const size_t first = size_;
    size_ += more;
    while (blocks_.size() * of_block < size_) {
      blocks_.push_back(std::make_unique<Thing[]>(of_block));
    }
    for (size_t index = first + more; index > first; --index) {
      own.push_back(static_cast<uint32_t>(index - 1));
    }
  }

  static constexpr size_t of_block = 1024;

  std::vector<std::unique_ptr<Thing[]>> blocks_;
  size_t size_ = 0;
  std::vector<std::vector<uint32_t>> free_;  ///< by rank, the place to take next at the end
};

}  // namespace lockstep::sim
