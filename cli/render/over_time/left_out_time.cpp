#include "cli/render/over_time/left_out_time.hpp"

#include <algorithm>
#include <iterator>

namespace lockstep::cli {

std::vector<LeftOutStretch> left_out_stretches(const Journal& journal, int32_t rank) {
  std::vector<LeftOutStretch> stretches;
  for (const RepeatedRows& rows : journal.repeated_on(rank, 0)) {
    stretches.push_back({rows});
  }
  return stretches;
}

Time simulated_moment(const std::vector<LeftOutStretch>& stretches, Time moment) {
  for (auto end = stretches.end(); end != stretches.begin();) {
    const auto behind =
        std::upper_bound(stretches.begin(), end, moment,
                         [](Time at, const LeftOutStretch& one) { return at < one.begin; });
    if (behind == stretches.begin()) {
      break;
    }
    const LeftOutStretch& last = *std::prev(behind);
    if (moment >= last.end()) {
      break;
    }
    moment = last.repeats(moment);
    end = std::prev(behind);
  }
  return moment;
}

}  // namespace lockstep::cli
