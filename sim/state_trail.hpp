#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/core/random.hpp"

namespace lockstep::sim {

/// By which transitions the world has come to the state in which it is: the last of them.
class StateTrail {
 public:
  static constexpr int64_t kept = 64;

  void add(uint64_t transition) {
    transitions_[static_cast<size_t>(added_ % kept)] = transition;
    ++added_;
  }
  /// What the last so many are, in their order; nothing: that is not known.
  std::optional<uint64_t> last(int64_t count) const {
    if (count > std::min(added_, kept)) {
      return std::nullopt;
    }
    uint64_t all = 0;
    for (int64_t at = added_ - count; at < added_; ++at) {
      all = random_key(all, transitions_[static_cast<size_t>(at % kept)]);
    }
    return all;
  }

 private:
  std::array<uint64_t, kept> transitions_{};
  int64_t added_ = 0;
};

}  // namespace lockstep::sim
