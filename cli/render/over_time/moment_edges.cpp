#include "cli/render/over_time/moment_edges.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "rehearsal/measure/row_repeats.hpp"

namespace lockstep::cli {

namespace {

bool is_of_checkpoint(const Journal& journal, const Row& row) {
  const Site* site = journal.sites.find(row.site);
  return site != nullptr && site->description.find("heckpoint") != std::string::npos;
}

// Work of the thread itself is issued when it has been done.
Time begin_of(const Completion& done) { return std::min(done.issue, done.start); }

class EdgeCollector {
 public:
  EdgeCollector(const Journal& journal, int32_t as, const std::vector<LeftOutStretch>& seen_by)
      : journal_(journal), as_(as), seen_by_(seen_by) {}

  void add_lane(const LaneJournal& lane, std::span<const RepeatedRows> repeated) {
    RowRepeats repeats(repeated);
    int64_t index = 0;
    lane.for_each([&](const Row& row) {
      const std::vector<RowRepeats::Entry>& again = repeats.of(index++);
      const std::optional<Activity::Kind> kind = activity_of(row);
      const Completion done = kind ? lane.completion(row.sequence) : Completion{};
      if (kind && done.outcome == Outcome::ok) {
        const int what = *kind == Activity::host && is_of_checkpoint(journal_, row)
                             ? MomentEdge::checkpoint
                             : static_cast<int>(*kind);
        add_operation(done, what, Time{});
        add_again(done, what, again);
      }
    });
  }

  std::vector<MomentEdge> edges;

 private:
  /// An operation, and what repeats it.
  struct Repeated {
    const Completion& done;
    int what;
    const std::vector<RowRepeats::Entry>& all;
  };

  void add_again(const Completion& done, int what, const std::vector<RowRepeats::Entry>& again) {
    const Repeated repeated{done, what, again};
    for (const RowRepeats::Entry& entry : again) {
      if (entry.number < seen_by_.size()) {
        const LeftOutStretch& seen = seen_by_[entry.number];
        add_before(repeated, entry, Time{}, seen.begin);
        add_behind(repeated, entry, Time{}, seen);
      }
    }
  }

  // What begins before the other rank leaves out the same.
  void add_before(const Repeated& op, const RowRepeats::Entry& entry, Time by, Time begin) {
    for (int64_t turn = 0; turn < entry.periods; ++turn) {
      const Time later = by + entry.first + entry.period * turn;
      if (begin_of(op.done) + later >= begin) {
        break;
      }
      if (entry.has_row) {
        add_operation(op.done, op.what, later);
      }
      for (size_t inner = entry.first_inner; inner < entry.end_inner; ++inner) {
        add_before(op, op.all[inner], later, begin);
      }
    }
  }

  // What ends behind that, and was not added before.
  void add_behind(const Repeated& op, const RowRepeats::Entry& entry, Time by,
                  const LeftOutStretch& seen) {
    for (int64_t turn = entry.periods - 1; turn >= 0; --turn) {
      const Time later = by + entry.first + entry.period * turn;
      if (op.done.finish + later + entry.longest <= seen.end()) {
        break;
      }
      const bool is_behind = op.done.finish + later > seen.end();
      if (entry.has_row && is_behind && begin_of(op.done) + later >= seen.begin) {
        add_operation(op.done, op.what, later);
      }
      for (size_t inner = entry.first_inner; inner < entry.end_inner; ++inner) {
        add_behind(op, op.all[inner], later, seen);
      }
    }
  }

  void add_operation(const Completion& done, int what, Time later) {
    add_span(done.start + later, done.finish + later, what);
    if (what == Activity::communication) {
      add_span(done.issue + later, done.start + later, Activity::waiting);
    }
  }

  void add_span(Time start, Time finish, int what) {
    if (start < finish) {
      edges.push_back({start, 1, as_, what});
      edges.push_back({finish, -1, as_, what});
    }
  }

  const Journal& journal_;
  int32_t as_;
  const std::vector<LeftOutStretch>& seen_by_;
};

}  // namespace

std::vector<MomentEdge> edges_of_rank(const Journal& journal, int32_t rank, int32_t as,
                                      const std::vector<LeftOutStretch>& seen_by) {
  EdgeCollector collector(journal, as, seen_by);
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    collector.add_lane(journal.lane(rank, lane), journal.repeated_on(rank, lane));
  }
  return std::move(collector.edges);
}

}  // namespace lockstep::cli
