#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep::sim {

/// The groups that one collective call makes. MemberList that name the same list or colour share
/// one, so that a group costs its size once and not once per member.
class NewGroups {
 public:
  struct Made {
    uint64_t key = 0;
    MemberList members;
    std::vector<std::pair<int32_t, int32_t>> positions;  ///< rank and index, by rank
    /// The rank's index in the group; -1: not a member.
    int32_t member_of(int32_t rank) const {
      const auto found = std::lower_bound(positions.begin(), positions.end(),
                                          std::pair{rank, std::numeric_limits<int32_t>::min()});
      return found != positions.end() && found->first == rank ? found->second : -1;
    }
  };

  NewGroups(uint64_t parent, int64_t call) : parent_(parent), call_(call) {}

  /// All ranks of a colour must be added, in group order, before the first asks for its group.
  void add_to_color(int32_t color, int32_t rank) { colors_[color].ranks.push_back(rank); }

  const Made& of_color(int32_t color) {
    Color& found = colors_[color];
    if (!found.made) {
      const uint64_t key = communicator_key(parent_, call_, found.ranks);
      found.made = made_of(key, std::move(found.ranks));
    }
    return *found.made;
  }

  const Made& of_list(std::span<const int64_t> ranks) {
    if (last_ != nullptr &&
        std::equal(ranks.begin(), ranks.end(), last_->members.begin(), last_->members.end())) {
      return *last_;
    }
    std::vector<int32_t> list(ranks.begin(), ranks.end());
    const uint64_t key = communicator_key(parent_, call_, list);
    const auto [place, fresh] = lists_.try_emplace(key);
    if (fresh) {
      place->second = made_of(key, std::move(list));
    }
    last_ = &place->second;
    return *last_;
  }

 private:
  struct Color {
    std::vector<int32_t> ranks;
    std::optional<Made> made;
  };

  static Made made_of(uint64_t key, std::vector<int32_t> ranks) {
    Made made;
    made.key = key;
    for (size_t index = 0; index < ranks.size(); ++index) {
      made.positions.emplace_back(ranks[index], static_cast<int32_t>(index));
    }
    std::sort(made.positions.begin(), made.positions.end());
    made.members = MemberList(std::move(ranks));
    return made;
  }

  uint64_t parent_;
  int64_t call_;
  std::map<int32_t, Color> colors_;
  std::map<uint64_t, Made> lists_;
  const Made* last_ = nullptr;  ///< all members of a call usually name one list
};

}  // namespace lockstep::sim
