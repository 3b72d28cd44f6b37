#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "model/core/random.hpp"

namespace lockstep::sim {

/// Sends and receives of one ordered pair with one tag that have found no partner.
struct Channel {
  std::deque<uint32_t> sends;
  std::deque<uint32_t> receives;
};

/// All channels, each made when it is first asked for.
class Channels {
 public:
  Channel& of(uint32_t communicator, int32_t source, int32_t destination, int32_t tag) {
    const uint64_t key = key_of(communicator, source, destination, tag);
    Recent& recent = recent_[key % recent_count];
    if (recent.channel == nullptr || recent.key != key) {
      recent = {key, &by_key_[key]};
    }
    return *recent.channel;
  }

 private:
  friend class WorldState;

  /// A channel that messages have just gone through: most do so again and again.
  struct Recent {
    uint64_t key = 0;
    Channel* channel = nullptr;  ///< it stays where it is
  };
  static constexpr size_t recent_count = 2048;

  // Ranks, tags and communicators are far from filling a mixed key.
  static uint64_t key_of(uint32_t communicator, int32_t source, int32_t destination, int32_t tag) {
    const uint64_t key = random_key(communicator, static_cast<uint64_t>(tag) & 0xffffffffu);
    return random_key(key, static_cast<uint64_t>(source) << 32 |
                               (static_cast<uint64_t>(destination) & 0xffffffffu));
  }

  std::unordered_map<uint64_t, Channel> by_key_;  ///< looked up only, never walked in its order
  std::vector<Recent> recent_ = std::vector<Recent>(recent_count);
};

}  // namespace lockstep::sim
