#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <vector>

#include "model/program/journal.hpp"
#include "sim/part.hpp"
#include "sim/rank_state.hpp"

namespace lockstep::sim {

/// The k-th call of one communicator.
struct CallSlot {
  size_t arrived = 0;           ///< members, those that others stand for included
  uint32_t members = no_index;  ///< list of parts, first come first
  uint32_t last = no_index;     ///< of that list
  Time latest{};
};

/// A group in which collectives match by position.
struct Communicator {
  uint64_t key = 0;
  MemberList members;      ///< empty = all
  int64_t first_call = 0;  ///< of the window
  std::deque<CallSlot> window;

  CallSlot& slot(int64_t call) {
    const auto offset = static_cast<size_t>(call - first_call);
    while (window.size() <= offset) {
      window.emplace_back();
    }
    return window[offset];
  }
};

/// All communicators by index: 0 is that of the world, the others are made by calls.
class Communicators {
 public:
  explicit Communicators(int32_t world_size) : all_(1), world_(static_cast<size_t>(world_size)) {
    std::iota(world_.begin(), world_.end(), 0);
  }

  /// Stays where it is, whatever is made later.
  Communicator& operator[](uint32_t index) { return all_[index]; }
  /// In which the part, of this rank, is a call.
  Communicator& of(const RankState& rank, const Part& part) {
    return all_[rank.groups[part.op.group.value].communicator];
  }
  /// Global ranks, in the order of the group.
  const std::vector<int32_t>& members_of(const Communicator& communicator) const {
    return communicator.members.empty() ? world_ : communicator.members.ranks();
  }
  /// The one with this key, made where there is none.
  uint32_t find_or_make(uint64_t key, const MemberList& members) {
    const auto [place, fresh] = by_key_.try_emplace(key, static_cast<uint32_t>(all_.size()));
    if (fresh) {
      all_.push_back({key, members, 0, {}});
    }
    return place->second;
  }

 private:
  friend class WorldState;

  std::deque<Communicator> all_;  ///< a call that makes groups holds on to its parent
  std::map<uint64_t, uint32_t> by_key_;
  std::vector<int32_t> world_;
};

}  // namespace lockstep::sim
