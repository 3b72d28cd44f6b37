#include "cli/render/timeline/rank_spans.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "cli/render/timeline/host_spans.hpp"
#include "cli/render/timeline/phases.hpp"
#include "model/strategy/pipeline/pipeline_marks.hpp"
#include "properties/diagnosis/call_numbers.hpp"

namespace lockstep::cli {

namespace {

class RankCollector {
 public:
  RankCollector(const RunResult& run, int32_t rank, int64_t room)
      : run_(run), journal_(*run.journal), rank_(rank), room_(room) {}

  RankSpans collect() {
    number_calls_of_several_lanes();
    for (int32_t lane = 0; lane < journal_.lanes(rank_); ++lane) {
      collect_lane(lane);
    }
    const bool hangs = std::ranges::any_of(
        run_.waiting, [this](const WaitingLane& lane) { return lane.rank == rank_; });
    for (auto& [track, phases] : phases_) {
      phases.end(hangs);
      // Few, and around everything else: they take no room from it.
      found_.spans.insert(found_.spans.end(), phases.spans().begin(), phases.spans().end());
    }
    return std::move(found_);
  }

 private:
  // Calls of one communicator are numbered over all threads of a rank, by the time of their issue.
  void number_calls_of_several_lanes() {
    if (journal_.lanes(rank_) == 1) {
      return;
    }
    std::set<uint64_t> keys = {0};
    for (const Membership& group : journal_.groups[static_cast<size_t>(rank_)]) {
      keys.insert(group.communicator);
    }
    for (const uint64_t key : keys) {
      const CallNumbers numbers(journal_, rank_, key);
      int64_t position = 0;
      for (const Call& call : calls_of(journal_, rank_, key)) {
        numbers_[{call.ticket.lane, call.row}] = numbers.of(position++);
      }
    }
  }

  int64_t number_of(LaneId lane, int64_t index, uint64_t communicator) {
    if (journal_.lanes(rank_) == 1) {
      const auto of_training = calls_.find(communicator);
      const CallNumbers& numbers =
          of_training != calls_.end()
              ? of_training->second
              : calls_.emplace(communicator, CallNumbers(journal_, rank_, communicator))
                    .first->second;
      return numbers.of(counts_[communicator]++);
    }
    const auto found = numbers_.find({lane, index});
    return found == numbers_.end() ? 0 : found->second;
  }

  bool has_room() {
    const auto used = static_cast<int64_t>(found_.spans.size() + found_.memory.size());
    if (used < room_) {
      return true;
    }
    ++found_.left_out;
    return false;
  }

  void add(const Span& span) {
    if (has_room()) {
      found_.spans.push_back(span);
    }
  }
  void add_all(const std::vector<Span>& spans) {
    for (const Span& span : spans) {
      add(span);
    }
  }

  void collect_lane(int32_t number) {
    const LaneJournal& lane = journal_.lane(rank_, number);
    HostSpans host(journal_, rank_, number);
    allocated_.clear();
    memory_changed_ = false;
    group_.clear();
    int64_t index = -1;
    begin_left_out(number);
    lane.for_each([&](const Row& row) {
      ++index;
      number == 0 ? leave_out_before(index, host) : leave_out_beside(index, host);
      if (row.row == RowKind::allocate || row.row == RowKind::release) {
        memory_changed_ = count_memory(row) || memory_changed_;
        return;
      }
      host.add(row);
      add_all(host.take());
      if (row.row == RowKind::op && row.kind == OpKind::event && number == 0 &&
          marked_action(row.site, row.tag)) {
        begin_micro_batch(row);
      }
      if (row.row == RowKind::op) {
        add_operation(row, LaneId{static_cast<uint16_t>(number)}, index, host.clock());
      }
    });
    add_group();
    const auto waiting = std::ranges::find_if(run_.waiting, [&](const WaitingLane& each) {
      return each.rank == rank_ && each.lane.value == number;
    });
    host.end(waiting == run_.waiting.end() ? nullptr : &*waiting);
    add_all(host.take());
    held_ = {};
  }

  void begin_micro_batch(const Row& mark) {
    add_group();
    phases_.try_emplace(mark.stream.value, mark.stream.value, mark.stream == compute_stream)
        .first->second.begin_micro_batch(mark);
  }

  void begin_left_out(int32_t lane) {
    left_out_ = journal_.repeated_on(rank_, lane);
    next_left_out_ = 0;
    if (lane > 0) {
      return;
    }
    for (const RepeatedRows& rows : left_out_) {
      steps_at_.emplace(std::pair(rows.begin, rows.first_inner), 0);
      steps_at_.emplace(std::pair(rows.end, rows.end_inner), 0);
    }
  }

  // Rows that were not simulated take their time, and count the steps that they repeat.
  void leave_out_before(int64_t index, HostSpans& host) {
    const auto ends = [&] {
      return next_left_out_ < left_out_.size() && left_out_[next_left_out_].row == index;
    };
    const auto begin = steps_at_.lower_bound({index, 0});
    const bool begins = begin != steps_at_.end() && begin->first.first == index;
    if (!begins && !ends()) {
      return;
    }
    add_group();
    Phases& phases =
        phases_.try_emplace(compute_stream.value, compute_stream.value, true).first->second;
    const auto mark = [&] {  // a period that begins or ends here, before what is left out next
      const auto of_period = steps_at_.find({index, static_cast<int64_t>(next_left_out_)});
      if (of_period != steps_at_.end()) {
        of_period->second = phases.steps();
      }
    };
    for (mark(); ends(); mark()) {
      const RepeatedRows& rows = left_out_[next_left_out_++];
      const int64_t before = steps_at_[{rows.begin, rows.first_inner}];
      const int64_t steps = (steps_at_[{rows.end, rows.end_inner}] - before) * rows.periods;
      phases.leave_out(steps);
      steps_left_out_.push_back(steps);
      host.leave_out(steps, rows.period * rows.periods);
    }
  }

  // Another thread was beside what the first one has left out.
  void leave_out_beside(int64_t index, HostSpans& host) {
    for (; next_left_out_ < left_out_.size() && left_out_[next_left_out_].row == index;
         ++next_left_out_) {
      const RepeatedRows& rows = left_out_[next_left_out_];
      add_group();
      host.leave_out(steps_left_out_[next_left_out_], rows.period * rows.periods);
    }
  }

  bool count_memory(const Row& row) {
    if (row.row == RowKind::allocate) {
      if (is_off_device(row.stream.device())) {
        return false;
      }
      allocated_[row.tag] = {Bytes(row.bytes), row.peer};
      held_[static_cast<size_t>(row.peer)] += Bytes(row.bytes);
      return true;
    }
    const auto found = allocated_.find(row.tag);
    if (found == allocated_.end()) {
      return false;
    }
    held_[static_cast<size_t>(found->second.second)] -= found->second.first;
    allocated_.erase(found);
    return true;
  }

  // Parts of a grouped call share a ticket: each stream shows it once.
  void add_operation(const Row& row, LaneId lane, int64_t index, Time clock) {
    if (group_.empty() || group_.front().row.sequence != row.sequence) {
      add_group();
      // Allocation has no time of its own: it is counted where the host next submits.
      if (memory_changed_ && lane.value == 0 && row.kind != OpKind::event) {
        if (has_room()) {
          found_.memory.push_back({clock, held_});
        }
        memory_changed_ = false;
      }
    }
    Span span;
    span.row = journal_.meant_by(rank_, row);
    span.lane = lane;
    span.track = row.kind == OpKind::host ? host_tracks + lane.value : row.stream.value;
    span.start = clock;  // of the host; add_group() has the rest
    if (is_collective(row.kind)) {
      if (const auto communicator = communicator_of(journal_, rank_, row.group)) {
        span.number = number_of(lane, index, *communicator);
        span.communicator = *communicator;
      }
    }
    const auto same = std::ranges::find(group_, span.track, &Span::track);
    if (same == group_.end()) {
      group_.push_back(span);
    } else {
      ++same->parts;
    }
  }

  void add_group() {
    for (const Span& span : group_) {
      if (span.row.kind != OpKind::event) {
        time_and_add(span);
      }
    }
    group_.clear();
  }

  void time_and_add(Span span) {
    const Row& row = span.row;
    const Completion done = journal_.lane(rank_, span.lane.value).completion(row.sequence);
    span.outcome = done.outcome;
    if (row.kind == OpKind::host) {
      const Site* site = journal_.sites.find(row.site);
      const bool statement = site != nullptr && !site->file.empty() && !site->hook.empty();
      if (!statement && done.outcome != Outcome::pending) {
        span.start = done.start;
        span.finish = done.finish;
        add(span);
      }
      return;
    }
    if (done.outcome != Outcome::pending) {
      span.start = done.start;
      span.finish = std::max(done.start, done.finish);
      ends_[span.track] = std::max(ends_[span.track], span.finish);
      add(span);
    } else if (blocked_.insert({span.track, span.lane.value}).second &&
               is_communication(row.kind)) {
      span.start = std::max({span.start, ends_[span.track], ends_[compute_stream.value]});
      span.finish = never;
      add(span);
    } else {
      span.finish = never;
    }
    if (row.stream.queue() == queue::compute && span.lane.value == 0) {
      const bool steps = row.stream == compute_stream;
      phases_.try_emplace(span.track, span.track, steps)
          .first->second.add(row, span.start, span.finish);
    }
  }

  const RunResult& run_;
  const Journal& journal_;
  int32_t rank_;
  int64_t room_;
  RankSpans found_;
  std::map<uint64_t, int64_t> counts_;  ///< calls that were simulated so far
  std::map<uint64_t, CallNumbers> calls_;
  std::map<std::pair<LaneId, int64_t>, int64_t> numbers_;
  std::map<int32_t, Time> ends_;               ///< of the last operation of a track
  std::set<std::pair<int32_t, int>> blocked_;  ///< tracks on which something never ends
  std::map<int32_t, Phases> phases_;           ///< by track
  std::span<const RepeatedRows> left_out_;     ///< of the lane
  size_t next_left_out_ = 0;
  /// By where a period that is repeated begins or ends: the row, and the entries before it.
  std::map<std::pair<int64_t, int64_t>, int64_t> steps_at_;
  std::vector<int64_t> steps_left_out_;                     ///< by entry
  std::vector<Span> group_;                                 ///< parts of the ticket at hand
  std::map<int32_t, std::pair<Bytes, int32_t>> allocated_;  ///< size and purpose
  bool memory_changed_ = false;
  MemoryByPurpose held_{};
};

}  // namespace

RankSpans spans_of_rank(const RunResult& run, int32_t rank, int64_t room) {
  return RankCollector(run, rank, room).collect();
}

}  // namespace lockstep::cli
