#include "properties/diagnosis/rank_races.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "model/core/queue_name.hpp"

namespace lockstep {

namespace {

// As a scenario spells it.
std::string stream_text(const Journal& journal, StreamId stream) {
  const DeviceId device = stream.device();
  std::string name;
  switch (stream.queue()) {
    case queue::compute: name = "compute"; break;
    case queue::communication: name = "comm"; break;
    case queue::copy: name = "copy"; break;
    case queue::data: name = "data"; break;
    case queue::read: name = "reading"; break;
    case queue::write: name = "writing"; break;
    default:
      const auto known = journal.stream_names.find(stream.queue());
      name = known != journal.stream_names.end() ? known->second : gloo_queue_name(stream.queue());
      name = name.empty() ? fmt::format("{}", stream.queue()) : name;
  }
  return device.value == 0 ? fmt::format("stream {}", name)
                           : fmt::format("stream {} of device {}", name, device.value);
}

class RankRaces {
 public:
  RankRaces(const Journal& journal, int32_t rank) : journal_(journal), rank_(rank) {
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      lanes_.push_back({&journal.lane(rank, lane), 0, {}, lane == 0, first_issue(lane)});
    }
    counts_.assign(lanes_.size(), 0);
  }

  std::vector<Race> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t lane = 0; lane < lanes_.size(); ++lane) {
        moved = advance(lane) || moved;
      }
      moved = moved || start_a_lane() || skip_an_unknown_promise();
    }
    return std::move(races_);
  }

 private:
  struct LaneState {
    const LaneJournal* rows = nullptr;
    int64_t next = 0;
    VectorClock clock;
    bool started = false;
    Time first_issue{};
  };

  Time first_issue(int32_t lane) const {
    Time first = Time::max();
    const LaneJournal& rows = journal_.lane(rank_, lane);
    rows.for_each([&](const Row& row) {
      if (row.row == RowKind::op) {
        first = std::min(first, rows.completion(row.sequence).issue);
      }
    });
    return first;
  }

  bool advance(size_t number) {
    LaneState& lane = lanes_[number];
    const int64_t begin = lane.next;
    while (lane.started && lane.next < lane.rows->size()) {
      const Row row = lane.rows->row(lane.next);
      if (number == 0) {
        start_lanes_before(time_of(row));
      }
      if (!known(lane, row)) {
        break;
      }
      take(number, row);
    }
    return lane.next != begin;
  }

  // The earliest time at which the host can have been past a row; 0 when it has none.
  Time time_of(const Row& row) const {
    if (row.row == RowKind::op) {
      return lanes_.front().rows->completion(row.sequence).issue;
    }
    const bool settles = row.row == RowKind::settle && row.peer < journal_.lanes(rank_);
    return settles ? journal_.lane(rank_, row.peer).completion(row.sequence).finish : Time();
  }

  // The start of a lane has no row: it knows what lane 0 knew when it first submitted.
  void start_lanes_before(Time issue) {
    for (LaneState& lane : lanes_) {
      if (!lane.started && lane.first_issue < issue) {
        lane.started = true;
        lane.clock = lanes_.front().clock;
      }
    }
  }
  bool start_a_lane() {
    for (LaneState& lane : lanes_) {
      if (!lane.started) {
        lane.started = true;
        lane.clock = lanes_.front().clock;
        return true;
      }
    }
    return false;
  }

  const VectorClock* clock_of(Ticket ticket) const {
    const auto found = tickets_.find({ticket.lane.value, ticket.sequence});
    return found == tickets_.end() ? nullptr : &found->second;
  }

  // Whether all that this row waits for has been submitted or fulfilled.
  bool known(const LaneState& lane, const Row& row) const {
    if (row.row == RowKind::settle && row.tag == 0) {
      const Ticket ticket{row.sequence, LaneId{static_cast<uint16_t>(row.peer)}};
      return !ticket || clock_of(ticket) != nullptr;
    }
    if (row.row != RowKind::op) {
      return true;
    }
    const RowLists lists = lane.rows->lists_of(row);
    return std::all_of(lists.after.begin(), lists.after.end(),
                       [this](Ticket ticket) { return !ticket || clock_of(ticket) != nullptr; });
  }

  // An operation behind a promise that is fulfilled only later: its order is not known, so it is
  // not judged.
  bool skip_an_unknown_promise() {
    for (size_t number = 0; number < lanes_.size(); ++number) {
      LaneState& lane = lanes_[number];
      if (lane.next < lane.rows->size() && lane.rows->row(lane.next).row == RowKind::op) {
        take(number, lane.rows->row(lane.next));
        return true;
      }
    }
    return false;
  }

  void take(size_t number, const Row& row) {
    LaneState& lane = lanes_[number];
    switch (row.row) {
      case RowKind::op: take_operations(number, row); return;
      case RowKind::settle:
        if (const VectorClock* clock =
                clock_of({row.sequence, LaneId{static_cast<uint16_t>(row.peer)}});
            clock != nullptr && row.tag == 0) {
          lane.clock.join(*clock);
        }
        break;
      case RowKind::fulfil:
        tickets_[{static_cast<uint16_t>(row.peer), row.sequence}] = lane.clock;
        break;
      case RowKind::read: read(number, row); break;
      case RowKind::allocate: homes_[row.tag] = row.stream; break;
      case RowKind::release: release(number, row); break;
      default: break;
    }
    ++lane.next;
  }

  size_t component_of(StreamId stream) {
    const auto [at, fresh] = streams_.try_emplace(stream, counts_.size());
    if (fresh) {
      counts_.push_back(0);
      stream_clocks_.emplace(stream, VectorClock());
    }
    return at->second;
  }

  // All parts of a grouped call start from the same past and do not order each other.
  void take_operations(size_t number, const Row& first) {
    LaneState& lane = lanes_[number];
    VectorClock ticket;
    std::map<StreamId, VectorClock> ends;
    for (; lane.next < lane.rows->size(); ++lane.next) {
      const Row row = lane.rows->row(lane.next);
      if (row.row != RowKind::op || row.sequence != first.sequence) {
        break;
      }
      const bool on_host = row.kind == OpKind::host;
      const size_t component = on_host ? number : component_of(row.stream);
      VectorClock clock = lane.clock;
      if (!on_host) {
        clock.join(stream_clocks_.at(row.stream));
      }
      const RowLists lists = lane.rows->lists_of(row);
      bool judged = true;
      for (const Ticket after : lists.after) {
        const VectorClock* known = clock_of(after);
        judged = judged && (!after || known != nullptr);
        if (known != nullptr) {
          clock.join(*known);
        }
      }
      const uint32_t count = ++counts_[component];
      if (judged) {
        use_all(row, lists, component, count, clock);
      }
      clock.set(component, count);
      ticket.join(clock);
      if (on_host) {
        lane.clock.join(clock);
      } else {
        ends[row.stream].join(clock);
      }
    }
    for (const auto& [stream, clock] : ends) {
      stream_clocks_.at(stream).join(clock);
    }
    tickets_[{static_cast<uint16_t>(number), first.sequence}] = ticket;
  }

  void use_all(const Row& row, const RowLists& lists, size_t component, uint32_t count,
               const VectorClock& clock) {
    const bool on_host = row.kind == OpKind::host;
    const std::string text = fmt::format(
        "{} on {}", row.kind == OpKind::compute ? name_of(row.kernel) : name_of(row.kind),
        on_host ? "the host" : stream_text(journal_, row.stream));
    std::vector<Access> uses;
    for (const Slice& slice : lists.reads) {
      uses.push_back({slice, true, false, false, component, count, row.site, text});
    }
    for (const Slice& slice : lists.writes) {
      const auto same = std::find_if(
          uses.begin(), uses.end(), [&slice](const Access& known) { return known.slice == slice; });
      if (same != uses.end()) {
        same->writes = true;
      } else {
        uses.push_back({slice, false, true, false, component, count, row.site, text});
      }
    }
    for (const Access& access : uses) {
      use(access, clock);
    }
  }

  void use(const Access& access, const VectorClock& clock) {
    if (access.slice.buffer == no_buffer) {
      return;
    }
    std::vector<Race> found = buffers_[access.slice.buffer].add(access, clock);
    races_.insert(races_.end(), found.begin(), found.end());
  }

  void read(size_t number, const Row& row) {
    const uint32_t count = ++counts_[number];
    const RowLists lists = lanes_[number].rows->lists_of(row);
    for (const Slice& slice : lists.reads) {
      use({slice, true, false, false, number, count, row.site, "the host"}, lanes_[number].clock);
    }
    lanes_[number].clock.set(number, count);
  }

  void release(size_t number, const Row& row) {
    const uint32_t count = ++counts_[number];
    VectorClock clock = lanes_[number].clock;
    const auto home = homes_.find(row.tag);
    const StreamId first = home == homes_.end() ? compute_stream : home->second;
    if (is_off_device(first.device())) {
      buffers_.erase(BufferId{static_cast<uint32_t>(row.tag)});  // kept until its copies have ended
      return;
    }
    const auto stream = stream_clocks_.find(first);
    if (stream != stream_clocks_.end()) {
      clock.join(stream->second);
    }
    const Slice all{BufferId{static_cast<uint32_t>(row.tag)}, DType::uint8, 0,
                    std::numeric_limits<int64_t>::max() / 2};
    use({all, false, false, true, number, count, row.site, "the release"}, clock);
    buffers_.erase(all.buffer);
    lanes_[number].clock.set(number, count);
  }

  const Journal& journal_;
  int32_t rank_;
  std::vector<LaneState> lanes_;
  std::vector<uint32_t> counts_;  ///< by component: first the lanes, then the streams
  std::map<StreamId, size_t> streams_;
  std::map<StreamId, VectorClock> stream_clocks_;
  std::map<std::pair<uint16_t, uint32_t>, VectorClock> tickets_;
  std::map<int32_t, StreamId> homes_;
  std::map<BufferId, AccessHistory> buffers_;
  std::vector<Race> races_;
};

}  // namespace

std::vector<Race> races_of(const Journal& journal, int32_t rank) {
  return RankRaces(journal, rank).run();
}

}  // namespace lockstep
