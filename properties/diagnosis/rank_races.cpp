#include "properties/diagnosis/rank_races.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "model/core/queue_name.hpp"
#include "model/strategy/sharded/fsdp/post_backward.hpp"
#include "properties/diagnosis/lane_times.hpp"

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
    case queue::post_backward: name = "post-backward"; break;
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
      const LaneJournal& rows = journal.lane(rank, lane);
      const bool starts = lane == 0;
      lanes_.push_back({&rows, 0, {}, starts, starts ? Time() : first_issue(rows)});
    }
    waiting_lanes_ = lanes_.size() - 1;
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
    for (Race& race : races_) {
      race.first_text = texts_[race.first.text];
      race.second_text = texts_[race.second.text];
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

  struct StreamState {
    uint32_t component = 0;
    VectorClock clock{};
    std::string on_stream{};  ///< "on stream communication"
  };

  bool advance(size_t number) {
    LaneState& lane = lanes_[number];
    const int64_t begin = lane.next;
    while (lane.started && lane.next < lane.rows->size()) {
      const Row row = lane.rows->row(lane.next);
      if (number == 0 && waiting_lanes_ > 0) {
        start_lanes_before(time_past(journal_, rank_, row));
      }
      if (!known(lane, row)) {
        break;
      }
      take(number, row);
    }
    return lane.next != begin;
  }

  // The start of a lane has no row: it knows what lane 0 knew when it first submitted.
  void start_lanes_before(Time issue) {
    for (LaneState& lane : lanes_) {
      if (!lane.started && lane.first_issue < issue) {
        start(lane);
      }
    }
  }
  bool start_a_lane() {
    const auto waiting =
        std::ranges::find_if(lanes_, [](const LaneState& lane) { return !lane.started; });
    if (waiting == lanes_.end()) {
      return false;
    }
    start(*waiting);
    return true;
  }
  void start(LaneState& lane) {
    lane.started = true;
    lane.clock = lanes_.front().clock;
    --waiting_lanes_;
  }

  static uint64_t key_of(uint16_t lane, uint32_t sequence) {
    return uint64_t{lane} << 32 | sequence;
  }
  const VectorClock* clock_of(Ticket ticket) const {
    const auto found = tickets_.find(key_of(ticket.lane.value, ticket.sequence));
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
        tickets_[key_of(static_cast<uint16_t>(row.peer), row.sequence)] = lane.clock;
        break;
      case RowKind::read: read(number, row); break;
      case RowKind::allocate: homes_[row.tag] = row.stream; break;
      case RowKind::release: release(number, row); break;
      default: break;
    }
    ++lane.next;
  }

  StreamState& state_of(StreamId stream) {
    const auto [at, fresh] = streams_.try_emplace(stream);
    if (fresh) {
      at->second.component = static_cast<uint32_t>(counts_.size());
      at->second.on_stream = "on " + stream_text(journal_, stream);
      counts_.push_back(0);
    }
    return at->second;
  }

  // All parts of a grouped call start from the same past and do not order each other.
  void take_operations(size_t number, const Row& first) {
    LaneState& lane = lanes_[number];
    VectorClock ticket;
    ends_.clear();
    for (; lane.next < lane.rows->size(); ++lane.next) {
      const Row row = lane.rows->row(lane.next);
      if (row.row != RowKind::op || row.sequence != first.sequence) {
        break;
      }
      StreamState* const stream = row.kind == OpKind::host ? nullptr : &state_of(row.stream);
      const uint32_t component =
          stream == nullptr ? static_cast<uint32_t>(number) : stream->component;
      VectorClock clock = lane.clock;
      if (stream != nullptr) {
        clock.join(stream->clock);
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
        Access access;
        access.component = component;
        access.count = count;
        access.site = row.site;
        access.text = text_of(row, stream);
        use_all(lists, access, clock);
      }
      clock.set(component, count);
      ticket.join(clock);
      if (stream == nullptr) {
        lane.clock.join(clock);
      } else {
        ends_.emplace_back(stream, std::move(clock));
      }
    }
    for (const auto& [stream, clock] : ends_) {
      stream->clock.join(clock);
    }
    tickets_[key_of(static_cast<uint16_t>(number), first.sequence)] = std::move(ticket);
  }

  uint32_t number_of(std::string text) {
    const auto known = std::ranges::find(texts_, text);
    const auto number = static_cast<uint32_t>(known - texts_.begin());
    if (known == texts_.end()) {
      texts_.push_back(std::move(text));
    }
    return number;
  }

  // "all_reduce on stream communication"; `stream` null: on the host.
  uint32_t text_of(const Row& row, const StreamState* stream) {
    const auto key = std::tuple(row.kind, row.kernel, stream);
    const auto known = text_of_kind_.find(key);
    if (known != text_of_kind_.end()) {
      return known->second;
    }
    const auto what = row.kind == OpKind::compute ? name_of(row.kernel) : name_of(row.kind);
    const uint32_t number = number_of(
        fmt::format("{} {}", what, stream == nullptr ? "on the host" : stream->on_stream));
    return text_of_kind_.emplace(key, number).first->second;
  }

  /// `access`: what all uses of an operation have in common.
  void use_all(const RowLists& lists, Access access, const VectorClock& clock) {
    uses_.clear();
    access.reads = true;
    for (const Slice& slice : lists.reads) {
      access.slice = slice;
      uses_.push_back(access);
    }
    access.reads = false;
    access.writes = true;
    for (const Slice& slice : lists.writes) {
      const auto same = std::ranges::find(uses_, slice, &Access::slice);
      if (same != uses_.end()) {
        same->writes = true;
      } else {
        access.slice = slice;
        uses_.push_back(access);
      }
    }
    for (const Access& each : uses_) {
      use(each, clock);
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
      use({slice, true, false, false, static_cast<uint32_t>(number), count, row.site,
           number_of("the host")},
          lanes_[number].clock);
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
    const auto stream = streams_.find(first);
    if (stream != streams_.end()) {
      clock.join(stream->second.clock);
    }
    const Slice all{BufferId{static_cast<uint32_t>(row.tag)}, DType::uint8, 0,
                    std::numeric_limits<int64_t>::max() / 2};
    use({all, false, false, true, static_cast<uint32_t>(number), count, row.site,
         number_of("the release")},
        clock);
    buffers_.erase(all.buffer);
    lanes_[number].clock.set(number, count);
  }

  const Journal& journal_;
  int32_t rank_;
  std::vector<LaneState> lanes_;
  size_t waiting_lanes_ = 0;
  std::vector<uint32_t> counts_;  ///< by component: first the lanes, then the streams
  std::map<StreamId, StreamState> streams_;
  std::unordered_map<uint64_t, VectorClock> tickets_;  ///< by key_of()
  std::unordered_map<int32_t, StreamId> homes_;
  std::unordered_map<BufferId, AccessHistory> buffers_;
  std::vector<std::string> texts_;  ///< Access::text
  std::map<std::tuple<OpKind, Kernel, const StreamState*>, uint32_t> text_of_kind_;
  // Scratch of one operation:
  std::vector<Access> uses_;
  std::vector<std::pair<StreamState*, VectorClock>> ends_;
  std::vector<Race> races_;
};

}  // namespace

std::vector<Race> races_of(const Journal& journal, int32_t rank) {
  return RankRaces(journal, rank).run();
}

}  // namespace lockstep
