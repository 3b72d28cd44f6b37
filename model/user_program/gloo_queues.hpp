#pragma once

#include <map>
#include <tuple>

#include "model/core/op.hpp"

namespace lockstep {

/// On which queues one rank's calls of Gloo stand. Every ProcessGroupGloo has threads of its own,
/// so collectives of one group wait for no other group's. Messages are posted at once: each waits
/// for its own peer, and only those of one peer, tag, group and direction keep their order. Where a
/// rank uses more groups or peers than there are queues, some share one, which is stricter.
class GlooQueues {
 public:
  /// `op`: a send, a receive (also from any_rank), or a collective.
  StreamId of(const Op& op) {
    if (is_point_to_point(op.kind)) {
      return op.kind == OpKind::send ? sends_.of({op.group, op.peer, op.tag})
                                     : receives_.of({op.group, op.peer, op.tag});
    }
    return of_group(op.group);
  }
  /// The stream of a group's collectives.
  StreamId of_group(GroupId group) {
    return group == world_group ? communication_stream : groups_.of({group, 0, 0});
  }

 private:
  /// By first use, which is the same in every world.
  class Range {
   public:
    using Key = std::tuple<GroupId, int32_t, int32_t>;  ///< group, peer, tag
    Range(uint8_t first, uint8_t size) : first_(first), size_(size) {}
    StreamId of(const Key& key) {
      const auto next = static_cast<uint8_t>(first_ + queues_.size() % size_);
      return stream(queues_.try_emplace(key, next).first->second);
    }

   private:
    uint8_t first_;
    uint8_t size_;
    std::map<Key, uint8_t> queues_;
  };

  Range groups_{queue::first_group, queue::groups};
  Range sends_{queue::first_send, queue::messages};
  Range receives_{queue::first_receive, queue::messages};
};

}  // namespace lockstep
