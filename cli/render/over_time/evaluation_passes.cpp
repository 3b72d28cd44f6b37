// Where a rank evaluates, also next to what was left out.
#include <algorithm>
#include <span>

#include "cli/render/over_time/moment_edges.hpp"
#include "cli/render/timeline/phases.hpp"
#include "rehearsal/measure/batch_loops.hpp"

namespace lockstep::cli {

namespace {

/// A step, something else of a training that has ended, or a forward, and a row of the rank within
/// it.
struct Phase {
  enum class Kind : uint8_t { step, ended, forward };
  int64_t row = 0;
  Kind kind = Kind::forward;
  bool evaluates = false;   ///< of a forward, where ranks mark their loops
  bool is_trained = false;  ///< of a forward: its backward follows
  Time start{};
  Time finish{};
};

struct SimulatedPhases {
  std::vector<Phase> all;
  bool are_marked = false;  ///< Phase::evaluates is known
};

/// As they were simulated.
class PhaseSearch {
 public:
  explicit PhaseSearch(const Journal& journal) : loops_(journal.sites) {}

  SimulatedPhases of(const Journal& journal, int32_t rank) {
    std::vector<int64_t> borders;
    for (const RepeatedRows& rows : journal.repeated_on(rank, 0)) {
      borders.insert(borders.end(), {rows.row, rows.begin, rows.end});
    }
    std::ranges::sort(borders);
    int64_t index = 0;
    auto border = borders.begin();
    const LaneJournal& lane = journal.lane(rank, 0);
    lane.for_each([&](const Row& row) {
      for (; border != borders.end() && *border == index; ++border) {
        phases_.leave_out(0);
        take(index - 1);
      }
      loops_.add(row);
      const bool computes =
          row.row == RowKind::op && row.kind != OpKind::event && row.stream == compute_stream;
      const Completion done = computes ? lane.completion(row.sequence) : Completion();
      if (computes && done.outcome == Outcome::ok) {
        phases_.add(row, done.start, std::max(done.start, done.finish));
      }
      ++index;
      take(index - 2);  // what a row shows to have ended did so before it
      if (computes && row.kernel == Kernel::layer_forward) {
        evaluates_ = loops_.evaluates();
      }
    });
    phases_.end(false);
    take(index - 1);
    return {std::move(found_), loops_.are_marked()};
  }

 private:
  void take(int64_t last_row) {
    for (; known_ < phases_.spans().size(); ++known_) {
      const Span& span = phases_.spans()[known_];
      if (span.kind == Span::Kind::step) {
        add(last_row, Phase::Kind::step, span.start, span.finish);
      } else if (span.kind == Span::Kind::forward) {
        add(last_row, Phase::Kind::forward, span.start, span.finish);
      } else if (span.kind == Span::Kind::optimizer) {
        add(last_row, Phase::Kind::ended, span.finish, span.finish);
      } else if (span.kind == Span::Kind::backward) {
        const auto forward =
            std::ranges::find(found_.rbegin(), found_.rend(), Phase::Kind::forward, &Phase::kind);
        if (forward != found_.rend()) {
          forward->is_trained = true;
        }
        add(last_row, Phase::Kind::ended, span.finish, span.finish);
      }
    }
  }

  void add(int64_t row, Phase::Kind kind, Time start, Time finish) {
    found_.push_back({row, kind, evaluates_, false, start, finish});
  }

  BatchLoops loops_;
  Phases phases_{compute_stream.value, true};
  std::vector<Phase> found_;
  size_t known_ = 0;
  bool evaluates_ = false;  ///< the last forward of a layer
};

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
      found_.push_back(*phase);
      found_.back().start += later;
      found_.back().finish += later;
    }
  }

  std::span<const RepeatedRows> repeated_;
  const std::vector<Phase>& phases_;
  std::vector<Phase> found_;
};

}  // namespace

// Without marks, a forward is trained that lies in a step, or whose backward follows: under manual
// optimization a step goes on from one period into the next, of which only ends show.
std::vector<std::pair<Time, Time>> evaluations_of(const Journal& journal, int32_t rank) {
  const SimulatedPhases simulated = PhaseSearch(journal).of(journal, rank);
  std::vector<std::pair<Time, Time>> steps;
  std::vector<Time> ends;
  std::vector<Phase> forwards;
  for (const Phase& phase : PhaseWalk(journal.repeated_on(rank, 0), simulated.all).all()) {
    if (phase.kind == Phase::Kind::forward) {
      forwards.push_back(phase);
      continue;
    }
    ends.push_back(phase.finish);
    if (phase.kind == Phase::Kind::step) {
      steps.emplace_back(phase.start, phase.finish);
    }
  }
  std::ranges::sort(steps);
  std::ranges::sort(ends);
  std::ranges::sort(forwards, {}, [](const Phase& phase) { return phase.start; });
  std::vector<std::pair<Time, Time>> found;
  auto step = steps.begin();  // the first that ends behind the forward
  auto end = ends.begin();    // likewise
  bool is_of_pass = false;
  for (const Phase& forward : forwards) {
    step = std::find_if(step, steps.end(),
                        [&](const auto& each) { return each.second > forward.start; });
    for (; end != ends.end() && *end <= forward.start; ++end) {
      is_of_pass = false;
    }
    const bool is_in_step = step != steps.end() && step->first <= forward.start;
    if (simulated.are_marked ? !forward.evaluates : is_in_step || forward.is_trained) {
      continue;
    }
    if (!is_of_pass) {
      found.emplace_back(end == ends.begin() ? forward.start : *std::prev(end), forward.finish);
    }
    is_of_pass = true;
    found.back().second = std::max(found.back().second, forward.finish);
  }
  return found;
}

}  // namespace lockstep::cli
