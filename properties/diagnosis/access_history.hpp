#pragma once

#include <cstdint>
#include <string>
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
  /// Returns the races with earlier uses; `clock`: what happened before this use.
  std::vector<Race> add(const Access& access, const VectorClock& clock);

 private:
  std::vector<Access> accesses_;
};

}  // namespace lockstep
