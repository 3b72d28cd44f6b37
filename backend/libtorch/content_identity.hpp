#pragma once

#include <cstdint>
#include <map>

#include "model/core/buffer.hpp"

namespace lockstep::backend {

/// What buffers hold, known without looking at it: slices with the same identity hold the same
/// elements. Copies and conversions carry it on; an all_gather makes it of the own part and of how
/// many updates there were, since those of the other ranks change with them.
class ContentIdentities {
 public:
  /// 0: not known for all of it. It depends on how the content came there, too.
  uint64_t of(const Slice& slice) const;

  /// Anything new.
  void written(const Slice& to);
  /// The elements of `from`, converted where types differ.
  void moved(const Slice& from, const Slice& to);
  /// `whole` is what the members of a communicator, a number for it, hold as their parts; `part`:
  /// identity of the own one, which may lie in the whole.
  void gathered(uint64_t communicator, uint64_t part, const Slice& whole);
  /// An optimizer has changed parameters.
  void updated() { ++updates_; }
  void forget(BufferId buffer) { of_buffer_.erase(buffer.value); }

 private:
  /// Elements up to `end`; the first is element `offset` of some content.
  struct Stretch {
    int64_t end = 0;
    uint64_t content = 0;
    int64_t offset = 0;
  };
  using Stretches = std::map<int64_t, Stretch>;  ///< by their begins; no two overlap

  void put(const Slice& to, uint64_t content, int64_t offset);

  std::map<uint32_t, Stretches> of_buffer_;  ///< by BufferId
  uint64_t contents_ = 0;
  uint64_t updates_ = 0;
};

}  // namespace lockstep::backend
