#include "rehearsal/measure/lane_spans.hpp"

#include <algorithm>

namespace lockstep::cli {

LaneSpans::LaneSpans(const Journal& journal, int32_t rank, int32_t lane, Time begin, Time end)
    : all_(journal.repeated_on(rank, lane)), begin_(begin), end_(end) {
  for (const RepeatedRows& rows : all_) {
    borders_.push_back(rows.begin);
    borders_.push_back(rows.end);
  }
  std::ranges::sort(borders_);
}

void LaneSpans::for_each(int64_t row, Time start, Time finish,
                         const std::function<void(Time from, Time until)>& take) {
  const auto before = next_border_;
  while (next_border_ < borders_.size() && borders_[next_border_] <= row) {
    ++next_border_;
  }
  if (next_border_ != before) {  // a row before all borders is not repeated
    find_repeated(row);
  }
  take_once(start, finish, take);
  for (size_t at = 0; at < repeated_.size(); ++at) {
    take_again(start, finish, at, take);
  }
}

void LaneSpans::find_repeated(int64_t row) {
  const auto has_row = [row](const RepeatedRows& rows) {
    return rows.begin <= row && row < rows.end;
  };
  const std::vector<int64_t> times = times_repeated(all_, has_row);
  repeated_.clear();
  std::vector<size_t> before;  // of those that repeat the row, by entry
  for (size_t at = 0; at < all_.size(); ++at) {
    before.push_back(repeated_.size());
    if (times[at] == 0) {
      continue;
    }
    Repeated again{all_[at].first,
                   all_[at].period,
                   all_[at].periods,
                   has_row(all_[at]),
                   before[static_cast<size_t>(all_[at].first_inner)],
                   before[static_cast<size_t>(all_[at].end_inner)]};
    for (size_t inner = again.first_inner; inner < again.end_inner; ++inner) {
      const Repeated& within = repeated_[inner];
      const Time last = within.first + within.period * (within.periods - 1);
      again.longest = std::max(again.longest, last + within.longest);
    }
    repeated_.push_back(again);
  }
}

void LaneSpans::take_again(Time start, Time finish, size_t at,
                           const std::function<void(Time from, Time until)>& take) const {
  const Repeated& again = repeated_[at];
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
      take_again(start + by, finish + by, inner, take);
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
