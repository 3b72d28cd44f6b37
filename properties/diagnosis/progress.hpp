#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "properties/diagnosis/operation_table.hpp"

namespace lockstep {

/// How far every lane and every operation of a run came.
struct RunProgress {
  struct LaneProgress {
    int32_t rank = 0;
    LaneId lane{};
    bool ended = false;
    bool any = false;           ///< one of the tickets is enough
    std::vector<Ticket> waits;  ///< for what, when it has not ended
  };
  std::vector<char> submitted;  ///< by operation
  std::vector<char> done;       ///< by operation
  std::vector<LaneProgress> lanes;
  std::set<std::tuple<int32_t, uint16_t, uint32_t>> fulfilled;  ///< promises: rank, lane, sequence
  /// The operations of each queue that are not done, in order; key: rank and stream.
  std::map<std::pair<int32_t, StreamId>, std::vector<size_t>> queues;

  bool all_done() const;
  bool ticket_done(const OperationTable& table, int32_t rank, Ticket ticket) const;
};

/// Progress according to the world's completions.
RunProgress progress_of(const RunResult& run, const OperationTable& table);

/// When a send is done: when the receive has been reached, or as soon as it is reached itself.
enum class Sends : uint8_t { rendezvous, buffered };

/// Repeats a journal without its completions: lanes submit in their order and wait where they
/// waited, queues work in order, a collective ends when all its members have reached it. Work
/// takes no time, so what is left undone can never be done.
RunProgress replay(const OperationTable& table, Sends sends);

}  // namespace lockstep
