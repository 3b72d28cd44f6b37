// Where a rank evaluates, also next to what was left out.
#include <algorithm>
#include <span>
#include <tuple>

#include "cli/render/over_time/moment_edges.hpp"
#include "cli/render/timeline/phases.hpp"

namespace lockstep::cli {

namespace {

/// A step, the end of one or a forward, and a row of the rank within it.
struct Phase {
  int64_t row = 0;
  bool is_step = false;
  bool is_trained = false;  ///< of a forward: its backward follows
  Time start{};
  Time finish{};
};

/// As they were simulated. A step goes on from one period into the next only under manual
/// optimization: there its optimizer shows when it ended, and backwards what was trained.
std::vector<Phase> simulated_phases(const Journal& journal, int32_t rank) {
  std::vector<int64_t> borders;
  for (const RepeatedRows& rows : journal.repeated_on(rank, 0)) {
    borders.insert(borders.end(), {rows.row, rows.begin, rows.end});
  }
  std::ranges::sort(borders);
  Phases phases(compute_stream.value, true);
  std::vector<Phase> found;
  size_t known = 0;
  int64_t index = 0;
  const auto take = [&](int64_t last_row) {
    for (; known < phases.spans().size(); ++known) {
      const Span& span = phases.spans()[known];
      if (span.kind == Span::Kind::step || span.kind == Span::Kind::forward) {
        found.push_back({last_row, span.kind == Span::Kind::step, false, span.start, span.finish});
      } else if (span.kind == Span::Kind::optimizer) {
        found.push_back({last_row, true, false, span.finish, span.finish});
      } else if (span.kind == Span::Kind::backward) {
        const auto forward = std::find_if(found.rbegin(), found.rend(),
                                          [](const Phase& phase) { return !phase.is_step; });
        if (forward != found.rend()) {
          forward->is_trained = true;
        }
      }
    }
  };
  auto border = borders.begin();
  const LaneJournal& lane = journal.lane(rank, 0);
  lane.for_each([&](const Row& row) {
    for (; border != borders.end() && *border == index; ++border) {
      phases.leave_out(0);
      take(index - 1);
    }
    if (row.row == RowKind::op && row.kind != OpKind::event && row.stream == compute_stream) {
      const Completion done = lane.completion(row.sequence);
      if (done.outcome == Outcome::ok) {
        phases.add(row, done.start, std::max(done.start, done.finish));
      }
    }
    ++index;
    take(index - 2);  // what a row shows to have ended did so before it
  });
  phases.end(false);
  take(index - 1);
  return found;
}

/// Phases in the order of the run, of what was left out those of the first and the last period.
class PhaseWalk {
 public:
  PhaseWalk(std::span<const RepeatedRows> repeated, const std::vector<Phase>& phases)
      : repeated_(repeated), phases_(phases) {}

  std::vector<Phase> all() {
    const int64_t end = phases_.empty() ? 0 : phases_.back().row + 1;
    add({0, std::max(end, repeated_.empty() ? 0 : repeated_.back().row)}, {0, repeated_.size()},
        Time{});
    return std::move(found_);
  }

 private:
  struct Rows {
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct Entries {
    size_t begin = 0;
    size_t end = 0;
  };

  void add(Rows rows, Entries entries, Time later) {
    for (size_t at = entries.begin; at < entries.end; ++at) {
      const RepeatedRows& again = repeated_[at];
      add_simulated({rows.begin, again.row}, later);
      rows.begin = again.row;
      const Entries inner{static_cast<size_t>(again.first_inner),
                          static_cast<size_t>(again.end_inner)};
      add({again.begin, again.end}, inner, later + again.first);
      if (again.periods > 1) {
        add({again.begin, again.end}, inner,
            later + again.first + again.period * (again.periods - 1));
      }
    }
    add_simulated(rows, later);
  }

  void add_simulated(Rows rows, Time later) {
    auto phase = std::ranges::lower_bound(phases_, rows.begin, {}, &Phase::row);
    for (; phase != phases_.end() && phase->row < rows.end; ++phase) {
      found_.push_back({phase->row, phase->is_step, phase->is_trained, phase->start + later,
                        phase->finish + later});
    }
  }

  std::span<const RepeatedRows> repeated_;
  const std::vector<Phase>& phases_;
  std::vector<Phase> found_;
};

}  // namespace

std::vector<std::pair<Time, Time>> evaluations_of(const Journal& journal, int32_t rank) {
  const std::vector<Phase> simulated = simulated_phases(journal, rank);
  std::vector<std::pair<Time, Time>> steps;
  std::vector<std::tuple<Time, Time, bool>> forwards;
  for (const Phase& phase : PhaseWalk(journal.repeated_on(rank, 0), simulated).all()) {
    if (phase.is_step) {
      steps.emplace_back(phase.start, phase.finish);
    } else {
      forwards.emplace_back(phase.start, phase.finish, phase.is_trained);
    }
  }
  std::ranges::sort(steps);
  std::ranges::sort(forwards);
  std::vector<std::pair<Time, Time>> found;
  auto step = steps.begin();  // the first that ends behind the forward
  bool is_of_pass = false;
  for (const auto& [start, finish, is_trained] : forwards) {
    for (; step != steps.end() && step->second <= start; ++step) {
      is_of_pass = false;
    }
    if ((step != steps.end() && step->first <= start) || is_trained) {
      is_of_pass = is_of_pass && !is_trained;
      continue;
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
