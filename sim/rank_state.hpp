#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "model/program/buffer_table.hpp"
#include "model/program/lane.hpp"
#include "model/program/run.hpp"
#include "sim/launch_queue.hpp"
#include "sim/submission_history.hpp"
#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

class SimPort;

/// How much later than the engine's clock says a lane submits its tickets from this one on, because
/// periods before them were left out.
struct SkippedTime {
  uint32_t first_ticket = 0;
  Time time{};
};

/// One host thread of one rank.
struct LaneState {
  LaneState(RankId rank, uint32_t index_of_rank, LaneId id, Program program)
      : lane(rank, id, std::move(program)), rank_index(index_of_rank) {}

  Lane lane;
  uint32_t rank_index;  ///< RankState::index
  Time host{};          ///< the thread's own clock; runs ahead of the device
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
  std::vector<SkippedTime> skipped_times;  ///< ascending; those that may be asked for

  Time skipped_time(uint32_t ticket) const {
    for (size_t at = skipped_times.size(); at > 0; --at) {
      if (skipped_times[at - 1].first_ticket <= ticket) {
        return skipped_times[at - 1].time;
      }
    }
    return {};
  }
  /// From its next ticket on.
  void skip_until(Time time) {
    while (skipped_times.size() > 1 && skipped_times[1].first_ticket <= tickets.low_water()) {
      skipped_times.erase(skipped_times.begin());
    }
    skipped_times.push_back({tickets.next(), time});
  }
};

/// Of a lane among those of all ranks: the index of its rank, and its own number in the lowest
/// bits.
inline constexpr int lane_bits = 10;
inline uint32_t index_of(const LaneState& lane) {
  return lane.rank_index << lane_bits | lane.lane.id().value;
}

/// The last submission of one stream.
struct StreamState {
  StreamId id{};
  Ticket tail{};
  Time finish{};
  bool known = true;  ///< `finish` is right
};

/// What communication beside the kernels of a rank costs these.
struct BesideKernels {
  Time computes_until{};      ///< its last kernel of which the end is known
  Time communicated_until{};  ///< its last communication that has ended
  Time lost{};                ///< by kernels, and to be added to the next one
};

/// A group as one rank knows it.
struct GroupState {
  uint32_t communicator = 0;  ///< index
  int32_t member = -1;        ///< this rank's index in it; -1: not a member
  int64_t next_call = 0;
  uint32_t stands_for = 1;        ///< members, this one included
  bool is_of_neighbours = false;  ///< other neighbourhoods have such a group as well
};

/// Periods that are left out, the same ones on all ranks.
struct LeftOut {
  int64_t from = 0;     ///< the number of the first
  int64_t periods = 0;  ///< 0: nothing is left out
  std::shared_ptr<const std::vector<RepeatedPeriods>> repeated;
  Time time{};  ///< that they take
};

/// Where a rank stands in a loop of its program. Periods are numbered as it begins them, in all
/// loops of their level, without those that are left out.
struct LoopState {
  struct Mark {
    std::vector<int64_t> rows;  ///< of the journal by lane, where a period begins
    int64_t left_out = 0;       ///< entries of the rank in Journal::repeated before it
    int64_t left_out_here = 0;  ///< with what was left out at its beginning
  };
  static constexpr int64_t any_kind = -1;

  int64_t periods = 0;           ///< that it began
  int64_t alike = 0;             ///< as it said last
  int64_t kind = any_kind;       ///< of the period that it is in
  int64_t last_unlike = -1;      ///< the last period that is of no known kind on this rank
  uint32_t first_ticket = 0;     ///< of that period
  int64_t tickets_left_out = 0;  ///< since then, in loops within it
  /// Of periods of which something has not ended: the first ticket of each lane.
  std::vector<std::vector<uint32_t>> unfinished{};
  SubmissionHistory submitted;  ///< before it
  std::vector<int64_t> memory;  ///< the program's own, when it began that period
  std::vector<Mark> marks;      ///< by number of the period; empty where there is no journal
  LeftOut left_out;             ///< once it comes there
};

/// Everything of one rank.
struct RankState {
  // What every operation asks lies together.
  Place place;
  uint32_t index = 0;       ///< in Engine::ranks
  uint32_t stands_for = 1;  ///< ranks, this one included
  std::unique_ptr<SimPort> port;
  std::unique_ptr<RankStack> stack;  ///< outlives the lanes, whose programs use it
  std::vector<std::unique_ptr<LaneState>> lanes;
  LaneState* running = nullptr;
  std::vector<StreamState> streams;
  std::vector<GroupState> groups;
  Time lost_at = Time::max();
  Time skipped{};                    ///< how long all took that it has left out
  SubmissionHistory submitted;       ///< where periods may be left out
  std::vector<Ticket> marked_steps;  ///< ends of steps that a StepObserver has still to see
  std::unique_ptr<BufferTable> buffers;
  LaunchQueue launched;
  BesideKernels beside;  ///< where SimulationOptions::contention is not 0
  /// Message of the first failed kernel; a lane that settles its ticket ends with it.
  std::optional<RankEnd> broken;

  bool sealed = false;  ///< the run is over: destructors may still release
  RankEnd end;
  std::vector<Ticket> open_promises;
  std::array<LoopState, period_levels> loops{};
  PeriodFollower* follower = nullptr;  ///< its program: it begins periods as rank 0 does
  size_t times_left_out = 0;           ///< how often it has
  UpdateSensitivities sensitivities;

  Time skipped_time(Ticket ticket) const {
    return lanes[ticket.lane.value]->skipped_time(ticket.sequence);
  }
  StreamState& stream(StreamId id) {
    for (StreamState& known : streams) {
      if (known.id == id) {
        return known;
      }
    }
    return streams.emplace_back(StreamState{id, {}, {}, true});
  }
};

/// The lane with this index_of().
inline LaneState& lane_at(std::vector<RankState>& ranks, uint32_t index) {
  return *ranks[index >> lane_bits].lanes[index & ((1u << lane_bits) - 1)];
}

}  // namespace lockstep::sim
