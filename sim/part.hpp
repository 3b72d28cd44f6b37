#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/core/op.hpp"
#include "sim/local_places.hpp"
#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

/// The lists of an operation that outlive its submission.
struct OwnedLists {
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  std::vector<int64_t> splits;
  std::vector<double> scalars;
  OpLists views;
  Values captured;  ///< what an eager send took along

  explicit OwnedLists(const OpLists& lists)
      : reads(lists.reads.begin(), lists.reads.end()),
        writes(lists.writes.begin(), lists.writes.end()),
        splits(lists.splits.begin(), lists.splits.end()),
        scalars(lists.scalars.begin(), lists.scalars.end()),
        views{{}, reads, writes, splits, scalars} {}
};

/// One submitted operation (a part of a grouped call, or a whole submission) that has not finished.
struct Part {
  Op op;
  std::unique_ptr<OwnedLists> lists;
  uint32_t rank = 0;  ///< index in Engine::ranks
  Ticket ticket{};
  Time issue{};
  Time ready{};                 ///< latest of what is known of its dependencies
  uint32_t unresolved = 0;      ///< tickets that it still waits for
  uint32_t next = no_index;     ///< in its collective's list of members
  int64_t call = 0;             ///< position within the communicator
  int32_t member = 0;           ///< index in the group
  uint32_t partner = no_index;  ///< matched send or receive
  bool failed = false;          ///< what it comes after has failed
};

/// Parts by index.
class PartPool {
 public:
  uint32_t take(uint32_t rank) { return parts_.take(rank); }
  void give_back(uint32_t index) {
    Part& part = parts_[index];
    part.lists.reset();
    part.partner = no_index;
    part.failed = false;
    part.next = no_index;
    parts_.give_back(part.rank, index);
  }
  size_t size() const { return parts_.size(); }
  Part& operator[](uint32_t index) { return parts_[index]; }

 private:
  LocalPlaces<Part> parts_;
};

}  // namespace lockstep::sim
