#pragma once

#include <cstdint>
#include <utility>

#include "model/core/op.hpp"
#include "sim/local_places.hpp"
#include "sim/owned_lists.hpp"
#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

/// One submitted operation (a part of a grouped call, or a whole submission) that has not finished.
struct Part {
  // What is looked at when another operation ends lies together.
  Time ready{};                 ///< latest of what is known of its dependencies
  uint32_t unresolved = 0;      ///< tickets that it still waits for
  uint32_t rank = 0;            ///< index in Engine::ranks
  uint32_t next = no_index;     ///< in its collective's list of members, or of free places
  int32_t member = 0;           ///< index in the group
  uint32_t partner = no_index;  ///< matched send or receive
  bool failed = false;          ///< what it comes after has failed
  Op op;                        ///< its lists are of PartPool::lists()
  Ticket ticket{};
  Time issue{};
  int64_t call = 0;  ///< position within the communicator

  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { forget_lists(); }
  void forget_lists() { OwnedListsPool::give_back(std::exchange(op.lists, nullptr)); }
};

/// Parts by index.
class PartPool {
 public:
  uint32_t take(uint32_t rank) {
    const uint32_t index = parts_.take(rank);
    parts_[index].next = no_index;
    return index;
  }
  OwnedListsPool& lists() { return lists_; }
  void give_back(uint32_t index) {
    Part& part = parts_[index];
    part.forget_lists();
    part.partner = no_index;
    part.failed = false;
    parts_.give_back(part.rank, index);
  }
  size_t size() const { return parts_.size(); }
  Part& operator[](uint32_t index) { return parts_[index]; }

 private:
  OwnedListsPool lists_;  ///< outlives the parts that hold on to it
  LocalPlaces<Part> parts_;
};

}  // namespace lockstep::sim
