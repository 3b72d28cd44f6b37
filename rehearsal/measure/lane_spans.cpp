#include "rehearsal/measure/lane_spans.hpp"

#include <algorithm>

namespace lockstep::cli {

void LaneSpans::for_each(int64_t row, Time start, Time finish,
                         const std::function<void(Time from, Time until)>& take) {
  take_once(start, finish, take);
  const std::vector<RowRepeats::Entry>& all = repeats_.of(row);
  for (const RowRepeats::Entry& again : all) {
    take_again(start, finish, again, all, take);
  }
}

void LaneSpans::take_again(Time start, Time finish, const RowRepeats::Entry& again,
                           const std::vector<RowRepeats::Entry>& all,
                           const std::function<void(Time from, Time until)>& take) const {
  const Time until_begin = begin_ - finish - again.longest - again.first;
  const int64_t first =
      again.period > Time{} ? std::max<int64_t>(0, until_begin / again.period) : 0;
  for (int64_t turn = first; turn < again.periods; ++turn) {
    const Time by = again.first + again.period * turn;
    if (start + by >= end_) {
      break;
    }
    if (again.has_row) {
      take_once(start + by, finish + by, take);
    }
    for (size_t inner = again.first_inner; inner < again.end_inner; ++inner) {
      take_again(start + by, finish + by, all[inner], all, take);
    }
  }
}

void LaneSpans::take_once(Time start, Time finish,
                          const std::function<void(Time from, Time until)>& take) const {
  const Time from = std::max(start, begin_);
  const Time until = std::min(finish, end_);
  if (from < until) {
    take(from, until);
  }
}

}  // namespace lockstep::cli
