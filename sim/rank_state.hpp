#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "model/program/buffer_table.hpp"
#include "model/program/lane.hpp"
#include "model/program/run.hpp"
#include "sim/launch_queue.hpp"
#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

class SimPort;

/// One host thread of one rank.
struct LaneState {
  LaneState(RankId rank, LaneId id, Program program) : lane(rank, id, std::move(program)) {}

  Lane lane;
  Time host{};  ///< the thread's own clock; runs ahead of the device
  TicketRing tickets;

  // What it waits for, while it waits.
  bool waiting = false;
  Until until = Until::all;
  uint32_t unresolved = 0;
  Time ready{};
  uint32_t generation = 0;  ///< wakes of an older generation are void
  std::vector<Ticket> awaited;
  std::vector<Hold>
      holds;  ///< oldest first; the host's clock is that of the first that still holds
};

/// The last submission of one stream.
struct StreamState {
  StreamId id{};
  Ticket tail{};
  Time finish{};
  bool known = true;  ///< `finish` is right
};

/// A group as one rank knows it.
struct GroupState {
  uint32_t communicator = 0;  ///< index
  int32_t member = -1;        ///< this rank's index in it; -1: not a member
  int64_t next_call = 0;
};

/// Everything of one rank.
struct RankState {
  Place place;
  std::unique_ptr<SimPort> port;
  std::unique_ptr<RankStack> stack;
  std::vector<std::unique_ptr<LaneState>> lanes;
  LaneState* running = nullptr;
  bool sealed = false;  ///< the run is over: destructors may still release
  std::vector<StreamState> streams;
  std::vector<GroupState> groups;
  std::unique_ptr<BufferTable> buffers;
  Time lost_at = Time::max();
  RankEnd end;
  LaunchQueue launched;
  std::vector<Ticket> open_promises;
  /// Message of the first failed kernel; a lane that settles its ticket ends with it.
  std::optional<RankEnd> broken;
  UpdateSensitivities sensitivities;

  StreamState& stream(StreamId id) {
    for (StreamState& known : streams) {
      if (known.id == id) {
        return known;
      }
    }
    return streams.emplace_back(StreamState{id, {}, {}, true});
  }
};

}  // namespace lockstep::sim
