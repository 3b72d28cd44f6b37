#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

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
    return by_key_[key_of(communicator, source, destination, tag)];
  }

 private:
  friend class WorldState;

  // Ranks, tags and communicators are far from filling a mixed key.
  static uint64_t key_of(uint32_t communicator, int32_t source, int32_t destination, int32_t tag) {
    const uint64_t key = random_key(communicator, static_cast<uint64_t>(tag) & 0xffffffffu);
    return random_key(key, static_cast<uint64_t>(source) << 32 |
                               (static_cast<uint64_t>(destination) & 0xffffffffu));
  }

  std::unordered_map<uint64_t, Channel> by_key_;  ///< looked up only, never walked in its order
};

}  // namespace lockstep::sim
