#include "cli/render/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/render/timeline/placement.hpp"
#include "cli/render/timeline/rank_spans.hpp"
#include "cli/render/timeline/span_text.hpp"
#include "cli/render/timeline/trace_file.hpp"
#include "properties/diagnosis/operation_table.hpp"

namespace lockstep::cli {

namespace {

constexpr int32_t ranks_max = 64;

class Timeline {
 public:
  Timeline(const Rehearsal& rehearsal, const std::string& path)
      : run_(rehearsal.run.result), journal_(*run_.journal), text_(rehearsal), file_(path) {}

  std::string write() {
    const int32_t shown = std::min(journal_.ranks(), ranks_max);
    for (int32_t rank = 0; rank < shown; ++rank) {
      name_process(rank);
      write_rank(rank);
    }
    write_arrows(shown);
    file_.commit();
    std::string left_out;
    if (shown < journal_.ranks()) {
      left_out +=
          fmt::format("note: the timeline shows ranks 0-{} of {}\n", shown - 1, journal_.ranks());
    }
    if (file_.left_out() > 0) {
      left_out += fmt::format("note: the timeline leaves out {} events after the first {}\n",
                              file_.left_out(), TraceFile::most_events);
    }
    return left_out;
  }

 private:
  void name_process(int32_t rank) {
    file_.event(fmt::format(
        R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}})", rank, rank));
    file_.event(fmt::format(
        R"("ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}})", rank, rank));
  }

  // The host threads come first, then the streams by number, each with what overflows it behind.
  void name_track(int32_t rank, int32_t track) {
    if (!named_.insert({rank, track}).second) {
      return;
    }
    const int32_t own = track % TrackPlacement::overflow_step;
    const int32_t order = own >= host_tracks ? own - host_tracks : own + host_tracks;
    file_.event(
        fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", rank,
                    track, quoted(track_name(track, journal_))));
    file_.event(fmt::format(
        R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})", rank,
        track, order * 8 + std::min(track / TrackPlacement::overflow_step, 7)));
  }

  void write_rank(int32_t rank) {
    RankSpans found = spans_of_rank(run_, rank, file_.room());
    file_.leave_out(found.left_out);
    sort_by_start(found.spans);
    TrackPlacement placement;
    auto mark = found.memory.begin();
    for (const Span& span : found.spans) {
      for (; mark != found.memory.end() && mark->at <= span.start; ++mark) {
        write_memory(rank, *mark);
      }
      const int32_t track = placement.place(span);
      if (span.kind == Span::Kind::operation && is_point_to_point(span.row.kind)) {
        message_tracks_[{rank, span.lane.value, span.row.sequence, span.track}] = track;
      }
      name_track(rank, track);
      write_slice(rank, track, span);
    }
    for (; mark != found.memory.end(); ++mark) {
      write_memory(rank, *mark);
    }
  }

  void write_memory(int32_t rank, const MemoryMark& mark) {
    std::string series;
    for (int purpose = 0; purpose < purpose_count; ++purpose) {
      series += fmt::format("{}\"{}\":{}", series.empty() ? "" : ",",
                            name_of(static_cast<Purpose>(purpose)),
                            mark.held[static_cast<size_t>(purpose)].count());
    }
    file_.event(fmt::format(R"("ph":"C","name":"memory in bytes","pid":{},"ts":{},"args":{{{}}})",
                            rank, microseconds(nanoseconds(mark.at)), series));
  }

  // What never ends has a begin and no end: viewers draw it up to the end of the trace and call it
  // unfinished, also when nothing happened after it began.
  void write_slice(int32_t rank, int32_t track, const Span& span) {
    const int64_t start = nanoseconds(span.start);
    const std::string duration =
        span.finish == never
            ? ""
            : fmt::format(",\"dur\":{}", microseconds(nanoseconds(span.finish) - start));
    file_.event(fmt::format(
        R"("ph":"{}","name":{},"cat":"{}","pid":{},"tid":{},"ts":{}{},"args":{{{}}})",
        span.finish == never ? "B" : "X", quoted(text_.name(span)), text_.category(span), rank,
        track, microseconds(start), duration, text_.arguments(span)));
  }

  // An arrow ends in the slice that holds its time, and the end of a slice is not in it.
  void arrow_end(const Operation& operation, size_t id, bool begins) {
    const auto track = message_tracks_.find(
        {operation.rank, operation.lane.value, operation.row.sequence, operation.row.stream.value});
    if (track == message_tracks_.end()) {
      return;
    }
    const Completion done =
        journal_.lane(operation.rank, operation.lane.value).completion(operation.row.sequence);
    const int64_t start = nanoseconds(done.start);
    const int64_t last = std::max(start, nanoseconds(done.finish) - 1);
    file_.event(fmt::format(
        R"("ph":"{}","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}{})",
        begins ? "s" : "f", id, operation.rank, track->second, microseconds(begins ? start : last),
        begins ? "" : ",\"bp\":\"e\""));
  }

  void write_arrows(int32_t shown) {
    if (message_tracks_.empty()) {
      return;
    }
    const OperationTable table(journal_);
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

  const RunResult& run_;
  const Journal& journal_;
  SpanText text_;
  TraceFile file_;
  std::set<std::pair<int32_t, int32_t>> named_;
  /// Where the slices of messages are: rank, lane, sequence and stream of each.
  std::map<std::tuple<int32_t, int32_t, uint32_t, int32_t>, int32_t> message_tracks_;
};

}  // namespace

std::string write_timeline(const Rehearsal& rehearsal, const std::string& path) {
  return Timeline(rehearsal, path).write();
}

}  // namespace lockstep::cli
