#include "rehearsal/measure/step_ends.hpp"

#include <algorithm>
#include <limits>

namespace lockstep::cli {

namespace {

class StepEnds {
 public:
  StepEnds(std::span<const RepeatedRows> repeated, const std::vector<StepMark>& steps)
      : repeated_(repeated),
        steps_(steps),
        counts_(times_repeated(repeated, [&](const RepeatedRows& rows) {
          return first_behind(rows.end) - first_behind(rows.begin);
        })) {}

  // Of rows in which these entries were left out, which came so much later. Counts `number` down.
  std::optional<Time> find(int64_t& number, const RepeatedRows& within, Time later) const {
    int64_t step = first_behind(within.begin);
    const int64_t end = first_behind(within.end);
    for (int64_t entry = within.first_inner; entry <= within.end_inner; ++entry) {
      const bool has_entry = entry < within.end_inner;
      const int64_t before =
          has_entry ? std::clamp(first_behind(repeated_[static_cast<size_t>(entry)].row), step, end)
                    : end;
      if (number < before - step) {
        return steps_[static_cast<size_t>(step + number)].finish + later;
      }
      number -= before - step;
      step = before;
      if (has_entry && number < counts_[static_cast<size_t>(entry)]) {
        return find_left_out(number, entry, later);
      }
      number -= has_entry ? counts_[static_cast<size_t>(entry)] : 0;
    }
    return std::nullopt;
  }

 private:
  std::optional<Time> find_left_out(int64_t& number, int64_t entry, Time later) const {
    const RepeatedRows& rows = repeated_[static_cast<size_t>(entry)];
    const int64_t each = counts_[static_cast<size_t>(entry)] / rows.periods;
    const int64_t turn = number / each;
    number %= each;
    return find(number, rows, later + rows.first + rows.period * turn);
  }

  // A step ends in the rows of a period, or behind them.
  int64_t first_behind(int64_t row) const {
    return std::ranges::upper_bound(steps_, row, {},
                                    [](const StepMark& step) { return step.rows.end; }) -
           steps_.begin();
  }

  std::span<const RepeatedRows> repeated_;
  const std::vector<StepMark>& steps_;
  std::vector<int64_t> counts_;  ///< of steps, by entry
};

}  // namespace

std::optional<Time> end_of_step(std::span<const RepeatedRows> repeated,
                                const std::vector<StepMark>& steps, int64_t number) {
  RepeatedRows all;
  all.end = std::numeric_limits<int64_t>::max();
  all.end_inner = std::ssize(repeated);
  return number < 0 ? std::nullopt : StepEnds(repeated, steps).find(number, all, Time{});
}

int64_t count_steps(const std::vector<StepMark>& steps) {
  int64_t all = 0;
  for (const StepMark& step : steps) {
    all += step.times;
  }
  return all;
}

}  // namespace lockstep::cli
