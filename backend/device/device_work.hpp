#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/device/device.hpp"
#include "backend/device/group_making.hpp"
#include "backend/rank/owned_op.hpp"

namespace lockstep::backend {

/// A communicator of the library as one rank uses it.
struct Link {
  std::string name;
  std::vector<int32_t> members;  ///< global ranks
  int32_t self = 0;              ///< index of this rank
  bool opened = false;
  LinkId id = 0;
  StreamNumber side_stream = 0;  ///< of its part of a grouped call over several links
  int64_t submitted = 0;         ///< calls, in the order that all members must keep
  int64_t launched = 0;
};

/// A process group as one rank uses it.
struct DeviceGroup {
  uint64_t key = 0;              ///< the same for all members
  std::vector<int32_t> members;  ///< global ranks, in group order
  int64_t calls = 0;             ///< collectives submitted so far
};

/// One number a ticket.
inline uint64_t key_of(Ticket ticket) {
  return uint64_t{ticket.lane.value} << 32 | uint64_t{ticket.sequence};
}

/// The operations of one call of submit, on their way through a stream.
struct DeviceWork {
  enum class State : uint8_t {
    queued,     ///< the host holds it
    launching,  ///< the library takes it
    launched,   ///< the stream holds it
  };
  /// The operations that go over one link. Those of several links have a stream each, between the
  /// begin and the end of the whole, since no part of a grouped call may wait for another.
  struct Part {
    Link* link = nullptr;
    int64_t turn = 0;  ///< first of the link's calls
    std::vector<const Op*> ops;
    std::vector<LinkedOp> linked;  ///< once it is launched
    State state = State::queued;
  };

  Ticket ticket;
  StreamId on;
  std::vector<Ticket> after;
  std::deque<OwnedOp> ops;
  std::vector<Part> parts;
  bool communicates = false;
  bool unanswered = false;  ///< no peer can ever answer: never launched
  bool failed = false;
  State state = State::queued;
  Mark begin = 0;
  Mark end = 0;
  std::unique_ptr<GroupMaking> making;  ///< of new_group, once it has begun
  const DeviceGroup* parent = nullptr;  ///< of new_group
  int64_t call = 0;                     ///< of new_group
};

/// One stream: what the host still holds, and what the device has received, both in order.
struct DeviceStream {
  std::deque<std::unique_ptr<DeviceWork>> queued;
  std::deque<std::unique_ptr<DeviceWork>> launched;
};

}  // namespace lockstep::backend
