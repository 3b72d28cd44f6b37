#include "properties/diagnosis/progress.hpp"

#include <algorithm>
#include <deque>

#include "properties/diagnosis/divergence.hpp"

namespace lockstep {

namespace {

bool runs_on_host(const Operation& operation) { return operation.row.kind == OpKind::host; }

std::pair<int32_t, StreamId> queue_of(const Operation& operation) {
  return {operation.rank, operation.row.stream};
}

// By rank with a journal of its own.
std::map<int32_t, std::vector<Ticket>> fulfilled_promises(const Journal& journal) {
  std::map<int32_t, std::vector<Ticket>> promises;
  for (const int32_t rank : journal.own_ranks()) {
    std::vector<Ticket>& own = promises[rank];
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      journal.lane(rank, lane).for_each([&own](const Row& row) {
        if (row.row == RowKind::fulfil) {
          own.push_back({row.sequence, LaneId{static_cast<uint16_t>(row.peer)}});
        }
      });
    }
  }
  return promises;
}

class Replay {
 public:
  Replay(const OperationTable& table, Sends sends)
      : table_(table),
        sends_(sends),
        started_(table.size(), 0),
        next_(),
        waiting_rank_(static_cast<size_t>(table.journal().ranks()), 0) {
    state_.submitted.assign(table.size(), 0);
    state_.done.assign(table.size(), 0);
    for (int32_t rank = 0; rank < table.journal().ranks(); ++rank) {
      first_lane_.push_back(next_.size());
      for (int32_t lane = 0; lane < table.journal().lanes(rank); ++lane) {
        state_.lanes.push_back({rank, LaneId{static_cast<uint16_t>(lane)}, false, false, {}});
        next_.push_back({0, table.first_of(rank, lane)});
      }
      wake(rank);
    }
    first_lane_.push_back(next_.size());
  }

  RunProgress run() {
    while (!ready_.empty()) {
      const int32_t rank = ready_.front();
      ready_.pop_front();
      waiting_rank_[static_cast<size_t>(rank)] = 0;
      advance(rank);
    }
    for (auto& [key, queue] : queues_) {
      state_.queues[key] = {queue.begin(), queue.end()};
    }
    return std::move(state_);
  }

 private:
  struct Position {
    int64_t row = 0;
    size_t operation = 0;
  };

  void wake(int32_t rank) {
    if (waiting_rank_[static_cast<size_t>(rank)] == 0) {
      waiting_rank_[static_cast<size_t>(rank)] = 1;
      ready_.push_back(rank);
    }
  }

  void advance(int32_t rank) {
    for (bool moved = true; moved;) {
      moved = false;
      const auto at = static_cast<size_t>(rank);
      for (size_t lane = first_lane_[at]; lane < first_lane_[at + 1]; ++lane) {
        moved = advance_lane(lane) || moved;
      }
      const auto first = queues_.lower_bound({rank, StreamId{}});
      for (auto queue = first; queue != queues_.end() && queue->first.first == rank; ++queue) {
        moved = advance_queue(queue->second) || moved;
      }
    }
  }

  bool advance_lane(size_t number) {
    RunProgress::LaneProgress& lane = state_.lanes[number];
    const LaneJournal& rows = table_.journal().lane(lane.rank, lane.lane.value);
    bool moved = false;
    while (next_[number].row < rows.size()) {
      const Row row = rows.row(next_[number].row);
      if (row.row == RowKind::settle) {
        const int64_t after = settled_until(number, rows, row);
        if (after == next_[number].row) {
          return moved;
        }
        next_[number].row = after;
      } else {
        take(number, row);
        ++next_[number].row;
      }
      moved = true;
    }
    moved = moved || !lane.ended;
    lane.ended = true;
    lane.waits.clear();
    return moved;
  }

  // The row after the wait that begins here when it is over, else the same row.
  int64_t settled_until(size_t number, const LaneJournal& rows, const Row& first) {
    RunProgress::LaneProgress& lane = state_.lanes[number];
    const int64_t begin = next_[number].row;
    lane.waits.clear();
    lane.any = first.tag == 1;
    int64_t end = begin;
    bool one_done = false;
    for (; end < rows.size(); ++end) {
      const Row row = rows.row(end);
      if (row.row != RowKind::settle || (end > begin && (first.tag != 1 || row.tag != 1))) {
        break;
      }
      const Ticket ticket{row.sequence, LaneId{static_cast<uint16_t>(row.peer)}};
      one_done = state_.ticket_done(table_, lane.rank, ticket) || one_done;
      lane.waits.push_back(ticket);
    }
    return one_done ? end : begin;
  }

  void take(size_t number, const Row& row) {
    const RunProgress::LaneProgress& lane = state_.lanes[number];
    if (row.row == RowKind::fulfil) {
      state_.fulfilled.insert({lane.rank, static_cast<uint16_t>(row.peer), row.sequence});
    }
    if (row.row != RowKind::op) {
      return;
    }
    const size_t operation = next_[number].operation++;
    state_.submitted[operation] = 1;
    if (runs_on_host(table_[operation])) {
      state_.done[operation] = 1;
    } else {
      queues_[queue_of(table_[operation])].push_back(operation);
    }
  }

  // Starts what is first in a queue, with all parts of its grouped call, and drops what is
  // done.
  bool advance_queue(std::deque<size_t>& queue) {
    bool moved = false;
    while (!queue.empty()) {
      const Ticket ticket = table_[queue.front()].ticket();
      size_t parts = 0;
      bool done = true;
      for (; parts < queue.size() && table_[queue[parts]].ticket() == ticket; ++parts) {
        if (started_[queue[parts]] == 0 && inputs_done(table_[queue[parts]])) {
          started_[queue[parts]] = 1;
          start(queue[parts]);
          moved = true;
        }
        done = done && state_.done[queue[parts]] != 0;
      }
      if (!done) {
        return moved;
      }
      queue.erase(queue.begin(), queue.begin() + static_cast<int64_t>(parts));
      moved = true;
    }
    return moved;
  }

  bool inputs_done(const Operation& operation) const {
    const LaneJournal& lane = table_.journal().lane(operation.rank, operation.lane.value);
    const RowLists lists = lane.lists_of(operation.row);
    return std::all_of(lists.after.begin(), lists.after.end(), [&](Ticket ticket) {
      return state_.ticket_done(table_, operation.rank, ticket);
    });
  }

  void finish(size_t operation) {
    state_.done[operation] = 1;
    wake(table_[operation].rank);
  }

  void start(size_t number) {
    const Operation& operation = table_[number];
    if (is_collective(operation.row.kind)) {
      arrive(operation);
    } else if (is_point_to_point(operation.row.kind)) {
      const size_t partner = table_.partner(number);
      if (operation.row.kind == OpKind::send && sends_ == Sends::buffered) {
        finish(number);
      }
      if (partner != OperationTable::none && started_[partner] != 0) {
        finish(number);
        finish(partner);
      }
    } else {
      finish(number);
    }
  }

  void arrive(const Operation& operation) {
    const auto& call = table_.call(operation.communicator, operation.position);
    const int64_t members = table_.members(operation.communicator).size();
    if (++arrived_[{operation.communicator, operation.position}] == members) {
      std::for_each(call.begin(), call.end(), [this](size_t part) { finish(part); });
    }
  }

  const OperationTable& table_;
  Sends sends_;
  RunProgress state_;
  std::vector<char> started_;
  std::vector<Position> next_;      ///< by lane
  std::vector<size_t> first_lane_;  ///< by rank, and the end
  std::map<std::pair<int32_t, StreamId>, std::deque<size_t>> queues_;
  std::map<std::pair<uint64_t, int64_t>, int64_t> arrived_;
  std::deque<int32_t> ready_;
  std::vector<char> waiting_rank_;
};

}  // namespace

bool RunProgress::all_done() const {
  const auto unfinished = [this](size_t operation) {
    return submitted[operation] == 0 || done[operation] == 0;
  };
  for (size_t operation = 0; operation < done.size(); ++operation) {
    if (unfinished(operation)) {
      return false;
    }
  }
  return std::all_of(lanes.begin(), lanes.end(),
                     [](const LaneProgress& lane) { return lane.ended; });
}

bool RunProgress::ticket_done(const OperationTable& table, int32_t rank, Ticket ticket) const {
  if (!ticket) {
    return true;
  }
  const auto [first, end] = table.of_ticket(rank, ticket);
  if (first == end) {
    return fulfilled.contains({rank, ticket.lane.value, ticket.sequence}) ||
           table.has_completed(rank, ticket);
  }
  return std::all_of(done.begin() + static_cast<int64_t>(first),
                     done.begin() + static_cast<int64_t>(end), [](char is) { return is != 0; });
}

RunProgress replay(const OperationTable& table, Sends sends) { return Replay(table, sends).run(); }

RunProgress progress_of(const RunResult& run, const OperationTable& table) {
  const Journal& journal = *run.journal;
  RunProgress state;
  state.submitted.assign(table.size(), 1);
  state.done.assign(table.size(), 0);
  for (size_t number = 0; number < table.size(); ++number) {
    const Operation& operation = table[number];
    const Completion completion =
        journal.lane(operation.rank, operation.lane.value).completion(operation.row.sequence);
    state.done[number] = completion.outcome == Outcome::ok || runs_on_host(operation);
    if (state.done[number] == 0 && end_of_rank(run, operation.rank) == RankEnd::Kind::lost) {
      state.submitted[number] = 0;  // it went with its rank, and waits for nothing
    } else if (state.done[number] == 0) {
      state.queues[queue_of(operation)].push_back(number);
    }
  }
  const std::map<int32_t, std::vector<Ticket>> promises = fulfilled_promises(journal);
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      state.lanes.push_back({rank, LaneId{static_cast<uint16_t>(lane)}, true, false, {}});
    }
    for (const Ticket promise : promises.at(journal.own_rank(rank))) {
      state.fulfilled.insert({rank, promise.lane.value, promise.sequence});
    }
  }
  for (const WaitingLane& waiting : run.waiting) {
    if (end_of_rank(run, waiting.rank) == RankEnd::Kind::lost) {
      continue;
    }
    // Lanes are ordered by rank, then by number.
    const auto key = [](const auto& lane) { return std::make_pair(lane.rank, lane.lane); };
    const auto lane = std::lower_bound(
        state.lanes.begin(), state.lanes.end(), waiting,
        [&key](const auto& known, const auto& wanted) { return key(known) < key(wanted); });
    if (lane != state.lanes.end() && key(*lane) == key(waiting)) {
      lane->ended = false;
      lane->any = waiting.until == Until::any;
      lane->waits = waiting.tickets;
    }
  }
  return state;
}

}  // namespace lockstep
