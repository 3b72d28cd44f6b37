#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// When rows of a lane took place within a stretch of time, also where a simulation left them out.
class LaneSpans {
 public:
  LaneSpans(const Journal& journal, int32_t rank, int32_t lane, Time begin, Time end);

  /// Calls `take` with each part of the stretch in which the row took place, which was simulated
  /// from `start` to `finish`. Rows are asked for in ascending order.
  void for_each(int64_t row, Time start, Time finish,
                const std::function<void(Time from, Time until)>& take);

 private:
  /// Periods that repeat a row: it is one of theirs, or repeated within them.
  struct Repeated {
    Time first{};  ///< by how much the first comes later
    Time period{};
    int64_t periods = 0;
    bool has_row = false;
    size_t first_inner = 0;  ///< of those that repeat the row, up to `end_inner`
    size_t end_inner = 0;
    Time longest{};  ///< by how much the row comes later at most in one of the periods
  };

  void find_repeated(int64_t row);
  void take_again(Time start, Time finish, size_t at,
                  const std::function<void(Time from, Time until)>& take) const;
  void take_once(Time start, Time finish,
                 const std::function<void(Time from, Time until)>& take) const;

  std::span<const RepeatedRows> all_;
  Time begin_;
  Time end_;
  std::vector<int64_t> borders_;  ///< rows between two of them are repeated alike
  size_t next_border_ = 0;
  std::vector<Repeated> repeated_;  ///< those that repeat the row asked for last, in their order
};

}  // namespace lockstep::cli
