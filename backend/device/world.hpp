#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "backend/device/board.hpp"
#include "backend/device/device.hpp"
#include "model/program/run.hpp"

namespace lockstep::backend {

/// One rank of a world of devices whose other ranks are other processes.
struct DeviceSeat {
  int32_t rank = 0;
  Device& device;
  Board& board;
  /// Returns when every rank has done its part, or after a deadline of its own: only then may
  /// links close, because others may still be taking what this rank has sent.
  std::function<void()> wait_for_all;
  /// How long one call of the device may hold the host, say while it loads a library, before the
  /// links are aborted: it may stand behind a communication that waits for a peer.
  std::chrono::milliseconds held_limit{60'000};
  /// Observes what the rank does; outlives the run; may be null.
  JournalFollower* follower = nullptr;
  /// Called when a fault took the rank away, after what it had submitted; null: nothing.
  std::function<void()> when_lost{};
  /// Takes, each text once, what the device or its library said where it failed; may be empty.
  std::function<void(const std::string&)> tell{};
};

/// Runs the program of one rank over devices. Of the result's lists by rank only this rank's
/// entries are filled, and its journal holds this rank's lanes. `deadline`: how long nothing may
/// happen on this rank while it waits before it counts as hung; a device that computes is not
/// waiting. Then all links are aborted, and what is pending ends as timed_out.
///
/// Matching is the library's. The collectives of a group are launched on every member in the order
/// in which they were submitted, over all streams: one that waits for a promise holds back the
/// later ones. Members whose calls differ are not compared: as in reality they wait forever, or
/// end with values that nobody asked for. Each direction, tag and group has a communicator of its
/// own for point-to-point, which is exact in who meets whom; sizes are not compared. There is no
/// receive from any source: it throws ProgramException. A call of a rank that is no member, or
/// with a root that is none, is never launched.
///
/// A send settles when the library has taken its data: small ones before they are received,
/// whatever RunOptions::eager_limit says. An operation whose peer was lost, or that comes after one
/// that failed, ends as failed; later calls on a link that one call missed are never launched.
/// Every buffer has memory on its device; those that carry no values are moved, but not computed
/// with. Times are those of the devices since the start of the run.
RunResult run_rank(const RunOptions& options, std::chrono::milliseconds deadline,
                   const DeviceSeat& seat, const ProgramOfRank& program_of_rank);

}  // namespace lockstep::backend
