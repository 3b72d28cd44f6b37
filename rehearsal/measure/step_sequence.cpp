#include "rehearsal/measure/step_sequence.hpp"

#include <algorithm>

namespace lockstep::cli {

StepSequence::StepSequence(std::span<const RepeatedRows> repeated, std::span<const StepMark> marks)
    : marks_(marks) {
  for (const RepeatedRows& rows : repeated) {
    places_.emplace(std::pair(rows.begin, rows.first_inner), Place{});
    places_.emplace(std::pair(rows.end, rows.end_inner), Place{});
  }
  taken_.reserve(marks.size());
  for (int64_t entry = 0; entry < std::ssize(repeated); ++entry) {
    take_until(repeated[static_cast<size_t>(entry)].row, entry);
    repeat(repeated[static_cast<size_t>(entry)]);
  }
  take_until(marks.empty() ? 0 : marks.back().rows.end, std::ssize(repeated));
  before_ = counts_before(nullptr, {});
}

StepSequence::Step StepSequence::at(int64_t number) const { return descend(before_, number).step; }

int64_t StepSequence::find(const std::vector<size_t>& marks, Time length, int64_t place) const {
  const std::vector<char> counts = among(marks);
  return descend(counts_before(&counts, length), place).number;
}

std::map<Time, int64_t> StepSequence::lengths(const std::vector<size_t>& marks) const {
  const std::vector<char> counts = among(marks);
  const std::vector<int64_t> times = times_taken();
  std::map<Time, int64_t> lengths;
  for (size_t at = 0; at < taken_.size(); ++at) {
    if (taken_[at].is_step() && counts[taken_[at].step.mark] != 0) {
      lengths[taken_[at].step.length] += times[at];
    }
  }
  return lengths;
}

std::vector<int64_t> StepSequence::times() const {
  const std::vector<int64_t> of_entries = times_taken();
  std::vector<int64_t> times(marks_.size(), 0);
  for (size_t at = 0; at < taken_.size(); ++at) {
    if (taken_[at].is_step()) {
      times[taken_[at].step.mark] += of_entries[at];
    }
  }
  return times;
}

// By entry, from the last one back: what is taken again counts as often as all of that.
std::vector<int64_t> StepSequence::times_taken() const {
  std::vector<int64_t> all(taken_.size(), 0);
  std::vector<int64_t> more(taken_.size() + 1, 0);  // from here back, and from there no more
  int64_t times = 1;
  for (size_t at = taken_.size(); at-- > 0;) {
    times += more[at + 1];
    const Taken& each = taken_[at];
    all[at] = times;
    if (!each.is_step()) {
      more[each.until] += times * each.times;
      more[each.from] -= times * each.times;
    }
  }
  return all;
}

std::vector<char> StepSequence::among(const std::vector<size_t>& marks) const {
  std::vector<char> counts(marks_.size(), 0);
  for (const size_t mark : marks) {
    counts[mark] = 1;
  }
  return counts;
}

// The marks that end in rows up to this one; `entry`: the next that is put back.
void StepSequence::take_until(int64_t row, int64_t entry) {
  auto place = places_.lower_bound({row_, entry});
  for (; next_mark_ < marks_.size() && marks_[next_mark_].rows.end <= row; ++next_mark_) {
    const StepMark& mark = marks_[next_mark_];
    for (; place != places_.end() && place->first.first < mark.rows.end; ++place) {
      place->second = {taken_.size(), last_finish_};
    }
    take(next_mark_, mark.finish);
  }
  for (; place != places_.end() && place->first <= std::pair(row, entry); ++place) {
    place->second = {taken_.size(), last_finish_};
  }
  row_ = row;
}

void StepSequence::take(size_t mark, Time finish) {
  taken_.push_back({{mark, finish - last_finish_, finish}});
  last_finish_ = finish;
}

void StepSequence::take_again(size_t from, size_t until, int64_t times, Time later, Time period) {
  if (from < until && times > 0) {
    taken_.push_back({{}, times, from, until, later, period});
  }
}

// The first step of the first turn follows the last one before it, and that of each further turn
// the last one of the turn before; the others follow one another as they did.
void StepSequence::repeat(const RepeatedRows& rows) {
  const Place begin = places_.at({rows.begin, rows.first_inner});
  const Place end = places_.at({rows.end, rows.end_inner});
  if (begin.taken == end.taken) {
    return;  // no step ends in it
  }
  const Step first = taken_[begin.taken].step;
  const size_t first_turn = taken_.size();
  take(first.mark, first.finish + rows.first);
  take_again(begin.taken + 1, end.taken, 1, rows.first, {});
  last_finish_ = end.last_finish + rows.first;
  if (rows.periods > 1) {
    const size_t second_turn = taken_.size();
    take(first.mark, first.finish + rows.first + rows.period);
    take_again(first_turn + 1, second_turn, 1, rows.period, {});
    take_again(second_turn, taken_.size(), rows.periods - 2, rows.period, rows.period);
    last_finish_ = end.last_finish + rows.first + rows.period * (rows.periods - 1);
  }
}

// Steps before each entry; with `marks` those that such a mark shows and that took so long.
std::vector<int64_t> StepSequence::counts_before(const std::vector<char>* marks,
                                                 Time length) const {
  std::vector<int64_t> before(taken_.size() + 1, 0);
  for (size_t at = 0; at < taken_.size(); ++at) {
    const Taken& each = taken_[at];
    const bool counts =
        marks == nullptr || ((*marks)[each.step.mark] != 0 && each.step.length == length);
    const int64_t own =
        each.is_step() ? int64_t{counts} : (before[each.until] - before[each.from]) * each.times;
    before[at + 1] = before[at] + own;
  }
  return before;
}

StepSequence::Found StepSequence::descend(const std::vector<int64_t>& before, int64_t place) const {
  int64_t earlier = 0;  // steps before what is looked through, less those before its entries
  Time later{};
  while (true) {
    const auto behind = std::ranges::upper_bound(before, place);
    const auto at = static_cast<size_t>(behind - before.begin()) - 1;
    const Taken& found = taken_[at];
    if (found.is_step()) {
      Step step = found.step;
      step.finish += later;
      return {step, earlier + before_[at]};
    }
    const int64_t of_turn = before[found.until] - before[found.from];
    const int64_t turn = (place - before[at]) / of_turn;
    earlier +=
        before_[at] + turn * (before_[found.until] - before_[found.from]) - before_[found.from];
    later += found.later + found.period * turn;
    place = before[found.from] + (place - before[at]) % of_turn;
  }
}

int64_t count_steps(std::span<const StepMark> marks) {
  int64_t all = 0;
  for (const StepMark& mark : marks) {
    all += mark.times;
  }
  return all;
}

}  // namespace lockstep::cli
