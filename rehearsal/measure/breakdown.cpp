#include "rehearsal/measure/breakdown.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>

#include "rehearsal/measure/activity.hpp"
#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

namespace {

struct Edge {
  Time at{};
  int change = 0;
  Activity::Kind activity = Activity::compute;
};

/// Periods that repeat a row: it is one of theirs, or repeated within them.
struct Repeated {
  Time first{};  ///< by how much the first comes later
  Time period{};
  int64_t periods = 0;
  bool has_row = false;
  size_t first_inner = 0;  ///< of those that repeat the row, up to `end_inner`
  size_t end_inner = 0;

  Time last() const { return first + period * (periods - 1); }
};

/// What a rank did, with what a simulation has left out put back.
class Edges {
 public:
  Edges(Time begin, Time end) : begin_(begin), end_(end) {}

  /// Also whenever it was repeated; `repeated` are those that repeat the row, in their order.
  void add(Activity::Kind activity, Time start, Time finish, std::span<const Repeated> repeated) {
    add_once(activity, start, finish);
    for (size_t at = 0; at < repeated.size(); ++at) {
      add_again(activity, start, finish, repeated, at);
    }
  }

  std::vector<Edge> in_order() {
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& left, const Edge& right) { return left.at < right.at; });
    return std::move(edges_);
  }

 private:
  void add_again(Activity::Kind activity, Time start, Time finish,
                 std::span<const Repeated> repeated, size_t at) {
    const Repeated& again = repeated[at];
    // What is repeated within may come later by so much.
    Time longest{};
    for (size_t inner = again.first_inner; inner < again.end_inner; ++inner) {
      longest += repeated[inner].last();
    }
    const Time until_begin = begin_ - finish - longest - again.first;
    const int64_t first =
        again.period > Time{} ? std::max<int64_t>(0, until_begin / again.period) : 0;
    for (int64_t turn = first; turn < again.periods; ++turn) {
      const Time by = again.first + again.period * turn;
      if (start + by >= end_) {
        break;
      }
      if (again.has_row) {
        add_once(activity, start + by, finish + by);
      }
      for (size_t inner = again.first_inner; inner < again.end_inner; ++inner) {
        add_again(activity, start + by, finish + by, repeated, inner);
      }
    }
  }

  void add_once(Activity::Kind activity, Time start, Time finish) {
    const Time from = std::max(start, begin_);
    const Time until = std::min(finish, end_);
    if (from < until) {
      edges_.push_back({from, 1, activity});
      edges_.push_back({until, -1, activity});
    }
  }

  Time begin_;
  Time end_;
  std::vector<Edge> edges_;
};

/// What repeats the rows of a lane. Rows between two places where periods begin or end are repeated
/// alike.
class RepetitionsOfRows {
 public:
  RepetitionsOfRows(const Journal& journal, int32_t rank, int32_t lane)
      : all_(journal.repeated_on(rank, lane)) {
    for (const RepeatedRows& rows : all_) {
      borders_.push_back(rows.begin);
      borders_.push_back(rows.end);
    }
    std::ranges::sort(borders_);
  }

  /// Rows are asked for in ascending order.
  std::span<const Repeated> of(int64_t row) {
    const auto before = next_border_;
    while (next_border_ < borders_.size() && borders_[next_border_] <= row) {
      ++next_border_;
    }
    if (next_border_ != before) {
      find(row);
    }
    return known_;
  }

 private:
  // A row before all borders is not repeated.
  void find(int64_t row) {
    const auto has_row = [row](const RepeatedRows& rows) {
      return rows.begin <= row && row < rows.end;
    };
    const std::vector<int64_t> times = times_repeated(all_, has_row);
    known_.clear();
    std::vector<size_t> before;  // of those that repeat the row, by entry
    for (size_t at = 0; at < all_.size(); ++at) {
      before.push_back(known_.size());
      if (times[at] > 0) {
        known_.push_back({all_[at].first, all_[at].period, all_[at].periods, has_row(all_[at]),
                          before[static_cast<size_t>(all_[at].first_inner)],
                          before[static_cast<size_t>(all_[at].end_inner)]});
      }
    }
  }

  std::span<const RepeatedRows> all_;
  std::vector<int64_t> borders_;
  size_t next_border_ = 0;
  std::vector<Repeated> known_;
};

std::vector<Edge> edges_of(const Journal& journal, int32_t rank, Time begin, Time end) {
  Edges edges(begin, end);
  for (int32_t number = 0; number < journal.lanes(rank); ++number) {
    const LaneJournal& lane = journal.lane(rank, number);
    int64_t index = 0;
    RepetitionsOfRows repetitions(journal, rank, number);
    lane.for_each([&](const Row& row) {
      const std::optional<Activity::Kind> activity = activity_of(row);
      const int64_t at = index++;
      if (!activity) {
        return;
      }
      const Completion done = lane.completion(row.sequence);
      if (done.outcome != Outcome::ok || done.issue >= end) {
        return;
      }
      const std::span<const Repeated> repeated = repetitions.of(at);
      edges.add(*activity, done.start, done.finish, repeated);
      if (*activity == Activity::communication) {
        edges.add(Activity::waiting, done.issue, done.start, repeated);
      }
    });
  }
  return edges.in_order();
}

void count_span(Breakdown& parts, const std::array<int, Activity::count>& active, Time span) {
  using enum Activity::Kind;
  if (active[compute] > 0) {
    parts.compute += span;
  } else if (active[optimizer] > 0) {
    parts.optimizer += span;
  } else if (active[optimizer_on_host] > 0) {
    parts.optimizer += span;
    parts.optimizer_on_host += span;
  } else if (active[communication] > 0) {
    parts.exposed_communication += span;
  } else if (active[loading] > 0) {
    parts.data += span;
  } else if (active[host] > 0) {
    parts.host += span;  // the rank does not wait for what is prepared meanwhile
  } else if (active[drive] > 0) {
    parts.drive += span;
  } else if (active[offload] > 0) {
    parts.offload += span;
  } else if (active[prepared] > 0) {
    parts.data += span;
  } else {
    parts.idle += span;
    parts.waiting += active[waiting] > 0 ? span : Time{};
  }
  parts.communication += active[communication] > 0 ? span : Time{};
  const bool busy = active[compute] > 0 || active[optimizer] > 0 || active[communication] > 0;
  parts.busy += busy ? span : Time{};
}

}  // namespace

Breakdown breakdown_of(const Journal& journal, int32_t rank, Time begin, Time end) {
  Breakdown parts;
  std::array<int, Activity::count> active{};
  Time now = begin;
  for (const Edge& edge : edges_of(journal, rank, begin, end)) {
    count_span(parts, active, edge.at - now);
    active[edge.activity] += edge.change;
    now = edge.at;
  }
  count_span(parts, active, end - now);
  return parts;
}

}  // namespace lockstep::cli
