#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "backend/device/device.hpp"
#include "backend/device/device_links.hpp"
#include "backend/device/group_making.hpp"
#include "backend/rank/owned_op.hpp"

namespace lockstep::backend {

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
