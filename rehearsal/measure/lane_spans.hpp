#pragma once

#include <cstdint>
#include <functional>

#include "rehearsal/measure/row_repeats.hpp"

namespace lockstep::cli {

/// When rows of a lane took place within a stretch of time, also where a simulation left them out.
class LaneSpans {
 public:
  LaneSpans(const Journal& journal, int32_t rank, int32_t lane, Time begin, Time end)
      : repeats_(journal.repeated_on(rank, lane)), begin_(begin), end_(end) {}

  /// Calls `take` with each part of the stretch in which the row took place, which was simulated
  /// from `start` to `finish`. Rows are asked for in ascending order.
  void for_each(int64_t row, Time start, Time finish,
                const std::function<void(Time from, Time until)>& take);

 private:
  void take_again(Time start, Time finish, const RowRepeats::Entry& again,
                  const std::vector<RowRepeats::Entry>& all,
                  const std::function<void(Time from, Time until)>& take) const;
  void take_once(Time start, Time finish,
                 const std::function<void(Time from, Time until)>& take) const;

  RowRepeats repeats_;
  Time begin_;
  Time end_;
};

}  // namespace lockstep::cli
