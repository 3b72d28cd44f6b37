#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/core/site.hpp"

namespace lockstep {

/// A vector clock over the lanes and streams of one rank: what has certainly happened before.
class VectorClock {
 public:
  void join(const VectorClock& other);
  uint32_t at(size_t component) const {
    return component < counts_.size() ? counts_[component] : 0;
  }
  void set(size_t component, uint32_t count);

 private:
  std::vector<uint32_t> counts_;
};

/// One use of a piece of a buffer by an operation, the host, or a release.
struct Access {
  Slice slice;
  bool reads = false;
  bool writes = false;
  bool releases = false;
  uint32_t component = 0;  ///< lane or stream that did it
  uint32_t count = 0;      ///< Nth access by that component
  SiteId site{};
  uint32_t text = 0;  ///< number of the text that says what it is, which many have in common

  bool before(const VectorClock& clock) const { return clock.at(component) >= count; }
};

/// Two uses of one buffer of which nothing orders the second after the first.
struct Race {
  Access first;
  Access second;
  std::string first_text{};  ///< "all_reduce on stream communication"
  std::string second_text{};
};

/// The uses of one buffer that a later one could still collide with.
class AccessHistory {
 public:
  /// Returns the races with earlier uses, in the order of these; `clock`: what happened before this
  /// use. Takes a time that follows from how many earlier uses overlap this one, not from how many
  /// there are: a fused buffer has a use for each of its parameters.
  std::vector<Race> add(const Access& access, const VectorClock& clock);

 private:
  struct Earlier {
    Access access;
    uint64_t number = 0;  ///< in the order of uses
  };
  /// Uses of slices of fewer than 2^k elements and not fewer than half of that, by where they
  /// begin.
  using OfOneLength = std::vector<Earlier>;

  void pass(OfOneLength& uses, size_t exponent, const Access& access, const VectorClock& clock);

  std::vector<OfOneLength> by_length_;  ///< k from 0 on
  uint64_t added_ = 0;
  std::vector<std::pair<uint64_t, Race>> found_;  ///< scratch of one use
};

}  // namespace lockstep
