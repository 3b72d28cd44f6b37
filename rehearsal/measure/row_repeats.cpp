#include "rehearsal/measure/row_repeats.hpp"

#include <algorithm>

namespace lockstep::cli {

RowRepeats::RowRepeats(std::span<const RepeatedRows> all) : all_(all) {
  for (const RepeatedRows& rows : all_) {
    borders_.push_back(rows.begin);
    borders_.push_back(rows.end);
  }
  std::ranges::sort(borders_);
}

const std::vector<RowRepeats::Entry>& RowRepeats::of(int64_t row) {
  const auto before = next_border_;
  while (next_border_ < borders_.size() && borders_[next_border_] <= row) {
    ++next_border_;
  }
  if (next_border_ != before) {  // a row before all borders is not repeated
    find(row);
  }
  return entries_;
}

void RowRepeats::find(int64_t row) {
  const auto has_row = [row](const RepeatedRows& rows) {
    return rows.begin <= row && row < rows.end;
  };
  const std::vector<int64_t> times = times_repeated(all_, has_row);
  entries_.clear();
  std::vector<size_t> before;  // of those that repeat the row, by number
  for (size_t at = 0; at < all_.size(); ++at) {
    before.push_back(entries_.size());
    if (times[at] == 0) {
      continue;
    }
    const RepeatedRows& rows = all_[at];
    Entry entry{at, rows.first, rows.period, rows.periods, has_row(rows), 0, 0, {}};
    entry.first_inner = before[static_cast<size_t>(rows.first_inner)];
    entry.end_inner = before[static_cast<size_t>(rows.end_inner)];
    for (size_t inner = entry.first_inner; inner < entry.end_inner; ++inner) {
      const Entry& within = entries_[inner];
      const Time last = within.first + within.period * (within.periods - 1);
      entry.longest = std::max(entry.longest, last + within.longest);
    }
    entries_.push_back(entry);
  }
}

}  // namespace lockstep::cli
