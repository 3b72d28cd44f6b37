#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/program/buffer_table.hpp"
#include "model/program/journal.hpp"

namespace lockstep::cli {

/// The finish of what never ended.
inline constexpr Time never = Time::max();

/// The track of a rank's host thread: behind every stream of a device, whose track is its number.
inline constexpr int32_t host_tracks = 1 << 16;

/// What one rank did from one time to another, before it is written.
struct Span {
  /// In the order of nesting: of what begins together, the outer comes first.
  enum class Kind : uint8_t {
    step,  ///< `number`: of the optimizer step, from 0
    forward,
    backward,
    optimizer,
    micro_batch,  ///< what a pipeline computes for one: `row` is the mark of it
    hook,         ///< of the user's program, or a function; `row.site`: a statement of it
    statement,    ///< of the user's program, at `row.site`
    wait,         ///< the host waits for `row`; of kind event: for something that is not known
    repeated,     ///< `number` steps that were not simulated, because they repeat earlier ones
    operation,
  };
  Kind kind = Kind::operation;
  Outcome outcome = Outcome::ok;
  int32_t track = 0;
  Time start{};
  Time finish{};
  Row row{};
  int32_t parts = 1;          ///< of a grouped call
  int64_t number = 0;         ///< also: of a collective in its communicator, from 1; 0: none
  uint64_t communicator = 0;  ///< of a collective with a number
  LaneId lane{};
  bool unfinished = false;  ///< the run ended before it, though nothing hangs
};

/// The memory of one rank from this time on.
struct MemoryMark {
  Time at{};
  MemoryByPurpose held{};
};

/// Everything of one rank, in no order.
struct RankSpans {
  std::vector<Span> spans;
  std::vector<MemoryMark> memory;
  int64_t left_out = 0;  ///< beyond the room that was given
};

}  // namespace lockstep::cli
