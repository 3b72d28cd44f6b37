#include "rehearsal/measure/step_lengths.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::cli {

namespace {

/// The steps of a rank in their order, with what was left out.
class TakenSteps {
 public:
  TakenSteps(std::span<const RepeatedRows> repeated, const std::vector<StepMark>& steps)
      : repeated_(repeated), steps_(steps) {
    for (const RepeatedRows& rows : repeated) {
      places_.emplace(std::pair(rows.begin, rows.first_inner), Place{});
      places_.emplace(std::pair(rows.end, rows.end_inner), Place{});
    }
    take_all();
  }

  /// By step: how long, and how often.
  std::vector<std::map<Time, int64_t>> lengths() const { return counted(); }

  /// Of the steps for which `counts` that took so long, the one with this number.
  size_t nth(const std::vector<char>& counts, Time length, int64_t number) const {
    std::vector<int64_t> before(taken_.size() + 1, 0);  // of them, by place in `taken_`
    for (size_t at = 0; at < taken_.size(); ++at) {
      const Taken& each = taken_[at];
      const int64_t own = each.again_until == 0
                              ? int64_t{counts[each.step] != 0 && each.length == length}
                              : before[each.again_until] - before[each.again_from];
      before[at + 1] = before[at] + own * each.times;
    }
    while (true) {
      const auto behind = std::ranges::upper_bound(before, number);
      const Taken& found = taken_[static_cast<size_t>(behind - before.begin()) - 1];
      if (found.again_until == 0) {
        return found.step;
      }
      const int64_t of_one_turn = before[found.again_until] - before[found.again_from];
      number = before[found.again_from] + (number - *(behind - 1)) % of_one_turn;
    }
  }

 private:
  void take_all() {
    for (int64_t entry = 0; entry < std::ssize(repeated_); ++entry) {
      take_until(repeated_[static_cast<size_t>(entry)].row, entry);
      repeat(repeated_[static_cast<size_t>(entry)]);
    }
    take_until(steps_.empty() ? 0 : steps_.back().rows.end, std::ssize(repeated_));
  }

  /// One step, or what was taken before once more.
  struct Taken {
    size_t step = 0;
    Time length{};
    Time finish{};
    int64_t times = 1;
    size_t again_from = 0;  ///< of `taken_`, up to `again_until`: not a step
    size_t again_until = 0;
  };
  /// Where a period that is repeated begins or ends.
  struct Place {
    size_t taken = 0;
    Time last_finish{};
  };

  // Those that end in rows up to this one; `entry`: the next that is put back.
  void take_until(int64_t row, int64_t entry) {
    auto place = places_.lower_bound({row_, entry});
    for (; next_ < steps_.size() && steps_[next_].rows.end <= row; ++next_) {
      const StepMark& step = steps_[next_];
      for (; place != places_.end() && place->first.first < step.rows.end; ++place) {
        place->second = {taken_.size(), last_finish_};
      }
      take(next_, step.finish);
    }
    for (; place != places_.end() && place->first <= std::pair(row, entry); ++place) {
      place->second = {taken_.size(), last_finish_};
    }
    row_ = row;
  }

  void take(size_t step, Time finish) {
    taken_.push_back({step, finish - last_finish_, finish, 1, 0, 0});
    last_finish_ = finish;
  }

  void take_again(size_t from, size_t until, int64_t times) {
    if (from < until && times > 0) {
      taken_.push_back({0, {}, {}, times, from, until});
    }
  }

  // The first of each turn follows the last step before it, the others follow one another as they
  // did.
  void repeat(const RepeatedRows& rows) {
    const Place begin = places_.at({rows.begin, rows.first_inner});
    const Place end = places_.at({rows.end, rows.end_inner});
    if (begin.taken == end.taken) {
      return;  // no step ends in it
    }
    const Taken first = taken_[begin.taken];
    const Time last_finish = end.last_finish + rows.first;
    const size_t first_turn = taken_.size();
    take(first.step, first.finish + rows.first);
    take_again(begin.taken + 1, end.taken, 1);
    if (rows.periods > 1) {
      const size_t second_turn = taken_.size();
      last_finish_ = last_finish;
      take(first.step, first.finish + rows.first + rows.period);
      take_again(first_turn + 1, second_turn, 1);
      take_again(second_turn, taken_.size(), rows.periods - 2);
    }
    last_finish_ = last_finish + rows.period * (rows.periods - 1);
  }

  // From the last one back: what is taken again counts as often as all of that.
  std::vector<std::map<Time, int64_t>> counted() const {
    std::vector<std::map<Time, int64_t>> lengths(steps_.size());
    std::vector<int64_t> more(taken_.size() + 1, 0);  // from here back, and from there no more
    int64_t times = 1;
    for (size_t at = taken_.size(); at-- > 0;) {
      times += more[at + 1];
      const Taken& each = taken_[at];
      if (each.again_until == 0) {
        lengths[each.step][each.length] += times * each.times;
        continue;
      }
      more[each.again_until] += times * each.times;
      more[each.again_from] -= times * each.times;
    }
    return lengths;
  }

  std::span<const RepeatedRows> repeated_;
  const std::vector<StepMark>& steps_;
  std::map<std::pair<int64_t, int64_t>, Place> places_;  ///< by row, and entries before it
  std::vector<Taken> taken_;
  size_t next_ = 0;
  int64_t row_ = 0;
  Time last_finish_{};
};

}  // namespace

void count_lengths(std::span<const RepeatedRows> repeated, std::vector<StepMark>& steps) {
  if (repeated.empty()) {
    return;
  }
  const std::vector<std::map<Time, int64_t>> lengths = TakenSteps(repeated, steps).lengths();
  for (size_t step = 0; step < steps.size(); ++step) {
    steps[step].times = 0;
    for (const auto& [length, times] : lengths[step]) {
      steps[step].lengths.emplace_back(length, times);
      steps[step].times += times;
    }
  }
}

size_t nth_step_of_length(std::span<const RepeatedRows> repeated,
                          const std::vector<StepMark>& steps, const std::vector<size_t>& like,
                          Time length, int64_t number) {
  std::vector<char> counts(steps.size(), 0);
  for (const size_t step : like) {
    counts[step] = 1;
  }
  return TakenSteps(repeated, steps).nth(counts, length, number);
}

}  // namespace lockstep::cli
