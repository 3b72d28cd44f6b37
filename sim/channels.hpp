#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/core/random.hpp"
#include "sim/index_list.hpp"

namespace lockstep::sim {

/// Parts, first come first. Most are taken as soon as they have come, so that few bytes hold them.
class PartQueue {
 public:
  bool empty() const { return first_ == parts_.size(); }
  uint32_t front() const { return parts_[first_]; }
  void push_back(uint32_t part) { parts_.push_back(part); }
  void pop_front() {
    if (++first_ == parts_.size()) {
      parts_.clear();
      first_ = 0;
    } else if (first_ > 2 * (parts_.size() - first_) + fewest_dropped) {
      drop();
    }
  }
  /// One that is in it.
  void erase(uint32_t part) {
    drop();
    parts_.erase(part);
  }
  std::span<const uint32_t> parts() const { return {parts_.begin() + first_, parts_.end()}; }

 private:
  static constexpr size_t fewest_dropped = 16;

  void drop() { parts_.drop_front(std::exchange(first_, 0)); }

  IndexList parts_;
  size_t first_ = 0;  ///< of those that are in it
};

/// Sends and receives of one ordered pair with one tag that have found no partner.
struct Channel {
  PartQueue sends;
  PartQueue receives;
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
