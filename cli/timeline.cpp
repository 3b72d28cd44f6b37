// Format: "Trace Event Format" of the Chromium project, the JSON form with `traceEvents`.
#include "cli/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/json.hpp"
#include "cli/output.hpp"
#include "model/core/queue_name.hpp"
#include "model/strategy/replica_sites.hpp"
#include "properties/operation_table.hpp"

namespace lockstep::cli {

namespace {

constexpr int32_t ranks_max = 64;
constexpr int64_t events_max = 1'000'000;
constexpr size_t buffer_bytes = size_t{1} << 20;
constexpr int host_track = 1000;  // beyond every stream of a device

// Microseconds with all their picoseconds would be six digits; three keep nanoseconds.
std::string microseconds(Time time) {
  return fmt::format("{}.{:03}", time.count() / 1'000'000, time.count() % 1'000'000 / 1'000);
}

std::string track_name(StreamId stream) {
  std::string name;
  switch (stream.queue()) {
    case queue::compute: name = "compute"; break;
    case queue::communication: name = "communication"; break;
    case queue::copy: name = "copy"; break;
    case queue::data: name = "data"; break;
    default:
      name = gloo_queue_name(stream.queue());
      name = name.empty() ? fmt::format("stream {}", stream.queue()) : name;
  }
  if (stream.device() == host_device) {
    return name + " on the host";
  }
  return stream.device().value == 0 ? name
                                    : fmt::format("{} of device {}", name, stream.device().value);
}

std::string slice_name(const Row& row) {
  if (row.site == site_id(replica_sites::recompute)) {
    return "recompute";
  }
  return std::string(row.kind == OpKind::compute ? name_of(row.kernel) : name_of(row.kind));
}

class Timeline {
 public:
  Timeline(const Rehearsal& rehearsal, const std::string& path)
      : rehearsal_(rehearsal), journal_(*rehearsal.run.result.journal), file_(path) {}

  std::string write() {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    const int32_t shown = std::min(journal_.ranks(), ranks_max);
    for (int32_t rank = 0; rank < shown; ++rank) {
      name_process(rank);
      for (int32_t lane = 0; lane < journal_.lanes(rank); ++lane) {
        write_lane(rank, lane);
      }
    }
    write_arrows(shown);
    text_ += "\n]}\n";
    flush();
    file_.commit();
    std::string left_out;
    if (shown < journal_.ranks()) {
      left_out +=
          fmt::format("note: the timeline shows ranks 0-{} of {}\n", shown - 1, journal_.ranks());
    }
    if (dropped_ > 0) {
      left_out += fmt::format("note: the timeline leaves out {} events after the first {}\n",
                              dropped_, events_max);
    }
    return left_out;
  }

 private:
  void flush() {
    file_.write(text_);
    text_.clear();
  }

  void event(const std::string& fields) {
    if (events_ >= events_max) {
      ++dropped_;
      return;
    }
    text_ += (events_++ == 0 ? "\n{" : ",\n{") + fields + "}";
    if (text_.size() >= buffer_bytes) {
      flush();
    }
  }

  void name_process(int32_t rank) {
    event(fmt::format(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}})",
                      rank, rank));
    event(fmt::format(R"("ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}})",
                      rank, rank));
  }

  // Tracks of a rank: its streams by number, then the host threads.
  int track_of(int32_t rank, int32_t lane, const Row& row) {
    const bool host = row.kind == OpKind::host;
    const int track = host ? host_track + lane : row.stream.value;
    const auto [entry, fresh] = track_ends_.try_emplace({rank, track}, Time{});
    static_cast<void>(entry);
    if (fresh) {
      const std::string name = host ? fmt::format("host thread {}", lane) : track_name(row.stream);
      event(fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}})",
                        rank, track, name));
    }
    return track;
  }

  void write_lane(int32_t rank, int32_t number) {
    const LaneJournal& lane = journal_.lane(rank, number);
    std::map<int32_t, Bytes> allocated;
    bool memory_changed = false;
    uint32_t last_sequence = 0;
    lane.for_each([&](const Row& row) {
      if (row.row == RowKind::allocate || row.row == RowKind::release) {
        memory_changed = count_memory(row, allocated) || memory_changed;
        return;
      }
      if (row.row != RowKind::op || row.kind == OpKind::event || row.sequence == last_sequence) {
        return;
      }
      last_sequence = row.sequence;
      const Completion done = lane.completion(row.sequence);
      if (done.outcome == Outcome::ok) {
        slice(rank, number, row, done);
      }
      // Allocation has no time of its own: it is counted where the host next submits.
      if (memory_changed && number == 0) {
        counter(rank, done.issue);
        memory_changed = false;
      }
    });
    held_ = {};
  }

  bool count_memory(const Row& row, std::map<int32_t, Bytes>& allocated) {
    const auto device = static_cast<uint8_t>(row.stream.value);
    if (row.row == RowKind::allocate) {
      if (device == host_device.value) {
        return false;
      }
      allocated[row.tag] = Bytes(row.bytes);
      purposes_[row.tag] = row.peer;
      held_[static_cast<size_t>(row.peer)] += Bytes(row.bytes);
      return true;
    }
    const auto found = allocated.find(row.tag);
    if (found == allocated.end()) {
      return false;
    }
    held_[static_cast<size_t>(purposes_[row.tag])] -= found->second;
    allocated.erase(found);
    return true;
  }

  void counter(int32_t rank, Time at) {
    std::string series;
    for (int purpose = 0; purpose < purpose_count; ++purpose) {
      series += fmt::format("{}\"{}\":{}", series.empty() ? "" : ",",
                            name_of(static_cast<Purpose>(purpose)),
                            held_[static_cast<size_t>(purpose)].count());
    }
    event(fmt::format(R"("ph":"C","name":"memory in bytes","pid":{},"ts":{},"args":{{{}}})", rank,
                      microseconds(at), series));
  }

  // Slices of a track must nest; parts that overlap are cut to what comes after the one before.
  void slice(int32_t rank, int32_t lane, const Row& row, const Completion& done) {
    const int track = track_of(rank, lane, row);
    Time& end = track_ends_[{rank, track}];
    const Time start = std::max(done.start, end);
    if (done.finish < start) {
      return;
    }
    end = done.finish;
    std::string arguments = fmt::format("\"bytes\":{}", row.bytes);
    if (is_communication(row.kind) && row.kind != OpKind::barrier) {
      arguments += fmt::format(",\"dtype\":\"{}\",\"elements\":{}", name_of(row.dtype),
                               row.bytes / size_of(row.dtype));
    }
    if (const Site* site = journal_.sites.find(row.site)) {
      const std::string place = journal_.sites.place(row.site);
      arguments += ",\"site\":" + Json(place).dump(-1, ' ', false, Json::error_handler_t::replace);
      arguments +=
          site->at.empty()
              ? ""
              : ",\"at\":" + Json(site->at).dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    event(fmt::format(
        R"("ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
        slice_name(row), name_of(row.kind), rank, track, microseconds(start),
        microseconds(done.finish - start), arguments));
  }

  void arrow_end(const Operation& operation, size_t id, bool begins) {
    const Completion done =
        journal_.lane(operation.rank, operation.lane.value).completion(operation.row.sequence);
    event(fmt::format(
        R"("ph":"{}","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}{})",
        begins ? "s" : "f", id, operation.rank, operation.row.stream.value,
        microseconds(begins ? done.start : done.finish), begins ? "" : ",\"bp\":\"e\""));
  }

  void write_arrows(int32_t shown) {
    const OperationTable table(journal_);
    if (!table.has_messages()) {
      return;
    }
    for (size_t index = 0; index < table.size(); ++index) {
      const Operation& send = table[index];
      if (send.row.kind != OpKind::send || table.partner(index) == OperationTable::none) {
        continue;
      }
      const Operation& receive = table[table.partner(index)];
      const auto outcome = [&](const Operation& one) {
        return journal_.lane(one.rank, one.lane.value).completion(one.row.sequence).outcome;
      };
      if (send.rank < shown && receive.rank < shown && outcome(send) == Outcome::ok &&
          outcome(receive) == Outcome::ok) {
        arrow_end(send, index, true);
        arrow_end(receive, index, false);
      }
    }
  }

  const Rehearsal& rehearsal_;
  const Journal& journal_;
  AtomicFile file_;
  std::string text_;
  int64_t events_ = 0;
  int64_t dropped_ = 0;
  std::map<std::pair<int32_t, int>, Time> track_ends_;
  std::map<int32_t, int32_t> purposes_;  ///< of a buffer of the lane at hand
  MemoryByPurpose held_{};
};

}  // namespace

std::string write_timeline(const Rehearsal& rehearsal, const std::string& path) {
  return Timeline(rehearsal, path).write();
}

}  // namespace lockstep::cli
