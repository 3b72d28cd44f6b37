#include "cli/render/over_time/moment_edges.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "cli/render/timeline/phases.hpp"

namespace lockstep::cli {

namespace {

/// Rows before a stretch that is left out, among which those are that it began with under way.
constexpr int64_t rows_under_way = 5'000;

bool is_of_checkpoint(const Journal& journal, const Row& row) {
  const Site* site = journal.sites.find(row.site);
  return site != nullptr && site->description.find("heckpoint") != std::string::npos;
}

class EdgeCollector {
 public:
  EdgeCollector(const Journal& journal, int32_t as, const std::vector<LeftOutStretch>& stretches,
                const std::vector<LeftOutStretch>& seen_by)
      : journal_(journal), as_(as), stretches_(stretches), seen_by_(seen_by) {
    for (size_t at = 0; at < std::min(stretches.size(), seen_by.size()); ++at) {
      by_end_.push_back(at);
    }
  }

  /// `repeated`: the stretches as rows of the lane, or none.
  void add_lane(const LaneJournal& lane, std::span<const RepeatedRows> repeated) {
    for (size_t at = 0; at < std::min(repeated.size(), stretches_.size()); ++at) {
      stretches_[at].rows = repeated[at];
    }
    std::ranges::stable_sort(by_end_, {}, [this](size_t at) { return stretches_[at].rows.end; });
    next_ = 0;
    int64_t index = 0;
    lane.for_each([&](const Row& row) {
      if (const std::optional<Activity::Kind> kind = activity_of(row)) {
        const Completion done = lane.completion(row.sequence);
        if (done.outcome == Outcome::ok) {
          add(row, *kind, done, repeated.empty() ? -1 : index);
        }
      }
      ++index;
    });
  }

  std::vector<MomentEdge> edges;

 private:
  void add(const Row& row, Activity::Kind kind, const Completion& done, int64_t index) {
    const int what = kind == Activity::host && is_of_checkpoint(journal_, row)
                         ? MomentEdge::checkpoint
                         : static_cast<int>(kind);
    add_operation(done, what, Time{});
    while (next_ < stretches_.size() && stretches_[next_].rows.row <= index) {
      ++next_;
    }
    Time later{};
    for (size_t at = next_; index >= 0 && at < stretches_.size(); ++at) {
      const LeftOutStretch& stretch = stretches_[at];
      if (stretch.rows.row - rows_under_way > index || done.finish + later <= stretch.begin) {
        break;
      }
      later += stretch.rows.period * stretch.rows.periods;
      add_operation(done, what, later);
    }
    const auto end_of = [this](size_t at) { return stretches_[at].rows.end; };
    auto behind = std::ranges::upper_bound(by_end_, index, {}, end_of);
    for (; index >= 0 && behind != by_end_.end() && end_of(*behind) - rows_under_way <= index;
         ++behind) {
      if (index >= stretches_[*behind].rows.begin) {
        repeat(done, what, stretches_[*behind], seen_by_[*behind]);
      }
    }
  }

  // In periods that this rank leaves out while the one that looks at it does something.
  void repeat(const Completion& done, int what, const LeftOutStretch& own,
              const LeftOutStretch& seen) {
    const auto later = [&own](int64_t turn) {
      return own.rows.first + own.rows.period * (turn - 1);
    };
    int64_t first = 1;
    for (; first < own.rows.periods && done.issue + later(first) < seen.begin; ++first) {
      add_operation(done, what, later(first));
    }
    for (int64_t last = own.rows.periods - 1;
         last >= first && done.finish + later(last) > seen.end(); --last) {
      add_operation(done, what, later(last));
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
  std::vector<LeftOutStretch> stretches_;  ///< with the rows of the lane
  const std::vector<LeftOutStretch>& seen_by_;
  std::vector<size_t> by_end_;  ///< stretches that another rank has as well
  size_t next_ = 0;             ///< the first stretch behind the row
};

Phases phases_of(const Journal& journal, int32_t rank,
                 const std::vector<LeftOutStretch>& stretches) {
  Phases phases(compute_stream.value, true);
  const LaneJournal& lane = journal.lane(rank, 0);
  auto next = stretches.begin();
  int64_t index = 0;
  lane.for_each([&](const Row& row) {
    for (; next != stretches.end() && next->rows.row == index; ++next) {
      phases.leave_out(0);
    }
    if (row.row == RowKind::op && row.kind != OpKind::event && row.stream == compute_stream) {
      const Completion done = lane.completion(row.sequence);
      if (done.outcome == Outcome::ok) {
        phases.add(row, done.start, std::max(done.start, done.finish));
      }
    }
    ++index;
  });
  phases.end(false);
  return phases;
}

}  // namespace

std::vector<MomentEdge> edges_of_rank(const Journal& journal, int32_t rank, int32_t as,
                                      const std::vector<LeftOutStretch>& stretches,
                                      const std::vector<LeftOutStretch>& seen_by) {
  EdgeCollector collector(journal, as, stretches, seen_by);
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    collector.add_lane(journal.lane(rank, lane), journal.repeated_on(rank, lane));
  }
  return std::move(collector.edges);
}

std::vector<std::pair<Time, Time>> evaluations_of(const Journal& journal, int32_t rank,
                                                  const std::vector<LeftOutStretch>& stretches) {
  const Phases phases = phases_of(journal, rank, stretches);
  std::vector<std::pair<Time, Time>> steps;
  std::vector<std::pair<Time, Time>> forwards;
  for (const Span& span : phases.spans()) {
    if (span.kind == Span::Kind::step) {
      steps.emplace_back(span.start, span.finish);
    } else if (span.kind == Span::Kind::forward) {
      forwards.emplace_back(span.start, span.finish);
    }
  }
  std::ranges::sort(steps);
  std::ranges::sort(forwards);
  std::vector<std::pair<Time, Time>> found;
  auto step = steps.begin();  // the first that ends behind the forward
  bool is_of_pass = false;
  for (const auto& [start, finish] : forwards) {
    for (; step != steps.end() && step->second <= start; ++step) {
      is_of_pass = false;
    }
    if (step != steps.end() && step->first <= start) {
      continue;  // it is trained
    }
    if (!is_of_pass) {
      found.emplace_back(step == steps.begin() ? start : std::prev(step)->second, finish);
    }
    is_of_pass = true;
    found.back().second = std::max(found.back().second, finish);
  }
  return found;
}

}  // namespace lockstep::cli
